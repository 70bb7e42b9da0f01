-- Inserts a RUNNING execution with a chosen slot number.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, slot, started_at)
SELECT randomblob(16), workspace_id, id, definition_id, version_id, 'RUNNING', 1, 0, 0
FROM workflow_execution_queue WHERE id = ?1
