-- Inserts a RUNNING execution for request ?1 in another workspace ?2.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT randomblob(16), ?2, id, definition_id, version_id, 'RUNNING', 1, 0
FROM workflow_execution_queue WHERE id = ?1
