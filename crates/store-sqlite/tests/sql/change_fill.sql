-- Writes ?1 events of other workspaces.
INSERT INTO request_event (request_id, workspace_id, to_status, at, by_whom)
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)
SELECT randomblob(16), randomblob(16), 'PENDING', 0, 'test' FROM number
