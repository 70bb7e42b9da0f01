-- Sets the execution of request $1 to RUNNING again, so that the engine is asked about it; workspace_limit rejects it if no slot is free.
UPDATE {schema}.workflow_execution e SET status = 'RUNNING', finished_at = NULL, error = NULL, admission = nextval('{schema}.admission_number')
FROM {schema}.workflow_execution_queue q
WHERE q.id = $1 AND e.id = q.execution_id AND e.request_id = q.id AND e.status <> 'RUNNING'
