-- RUNNING executions after ($1, $2), by workspace and admission.
SELECT id, workspace_id, request_id, definition_id, version_id, status, admission, started_at, finished_at, error
FROM workflow_execution
WHERE status = 'RUNNING' AND (workspace_id, admission)
    > (coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid), coalesce($2, -1::bigint))
ORDER BY workspace_id, admission LIMIT $3
