-- Inserts one definition for each of the workspaces ?1 to ?2, at ?3.
WITH RECURSIVE number (n) AS (VALUES (?1) UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
INSERT INTO workflow_definition (id, workspace_id, name, current_version_id, versions, created_at)
SELECT unhex(printf('%012x70028000%012x', n, n)), unhex(printf('%012x70018000%012x', n, n)), 'order',
    unhex(printf('%012x70038000%012x', n, n)), 1, ?3
FROM number
