-- Publishes the definitions of the workspaces ?1 to ?2, at ?3.
WITH RECURSIVE number (n) AS (VALUES (?1) UNION ALL SELECT n + 1 FROM number WHERE n < ?2)
INSERT INTO workflow_definition_version (id, workspace_id, definition_id, number, body, created_at)
SELECT unhex(printf('%012x70038000%012x', n, n)), unhex(printf('%012x70018000%012x', n, n)),
    unhex(printf('%012x70028000%012x', n, n)), 1,
    '{"binding": {"workflow_type": "order", "task_queue": "orders"}}', ?3
FROM number
