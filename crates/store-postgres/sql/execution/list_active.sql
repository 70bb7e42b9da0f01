-- Lists RUNNING executions after ($1, $2), by workspace and admission.
SELECT {execution/columns}
FROM {schema}.workflow_execution
WHERE status = 'RUNNING' AND (workspace_id, admission)
    > (coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid), coalesce($2, -1::bigint))
ORDER BY workspace_id, admission LIMIT $3
