-- Inserts a RUNNING execution for request $2 in workspace $3.
INSERT INTO workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT $1, $3, id, definition_id, version_id, 'RUNNING', nextval('admission_number'), now()
FROM workflow_execution_queue WHERE id = $2
