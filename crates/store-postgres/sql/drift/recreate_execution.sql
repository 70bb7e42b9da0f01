-- Inserts the missing execution of request $2 as RUNNING since $1; workspace_limit rejects it if no slot is free.
INSERT INTO {schema}.workflow_execution (id, workspace_id, request_id, definition_id, version_id, status, admission, started_at)
SELECT execution_id, workspace_id, id, definition_id, version_id, 'RUNNING', nextval('{schema}.admission_number'),
    coalesce($1::timestamptz, statement_timestamp())
FROM {schema}.workflow_execution_queue WHERE id = $2
