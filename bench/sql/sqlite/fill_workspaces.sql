-- Inserts the workspaces ?1 to ?2 with the limit ?3, paused or not (?4), at ?5.
WITH RECURSIVE number (n) AS (VALUES (?1) UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
INSERT INTO workspace (id, name, plan, limit_override, paused, created_at, updated_at)
SELECT unhex(printf('%012x70018000%012x', n, n)), 'workspace ' || n, 'FREE', ?3, ?4, ?5, ?5 FROM number
