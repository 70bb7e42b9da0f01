-- Inserts a RUNNING execution for request $2 in workspace $3.
INSERT INTO leasehold.workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT $1, $3, id, definition_id, version_id, 'RUNNING', nextval('leasehold.admission_number'), now()
FROM leasehold.workflow_execution_queue WHERE id = $2
