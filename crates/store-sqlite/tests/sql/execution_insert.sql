-- Inserts a RUNNING execution for a request, bypassing the program.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT randomblob(16), workspace_id, id, definition_id, version_id, 'RUNNING', 1, 0
FROM workflow_execution_queue WHERE id = ?1
