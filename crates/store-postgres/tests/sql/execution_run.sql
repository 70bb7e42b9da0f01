-- Inserts a RUNNING execution for request $2, numbered after all others.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT $1, workspace_id, id, definition_id, version_id, 'RUNNING', nextval('admission_number'), now()
FROM workflow_execution_queue WHERE id = $2
