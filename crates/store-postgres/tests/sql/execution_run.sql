-- Inserts a RUNNING execution for request $2, numbered after all others.
INSERT INTO leasehold.workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT $1, workspace_id, id, definition_id, version_id, 'RUNNING', nextval('leasehold.admission_number'), now()
FROM leasehold.workflow_execution_queue WHERE id = $2
