-- Lists RUNNING executions ($3 is their status) of a workspace admitted before $2, newest first.
SELECT {execution/columns}
FROM {schema}.workflow_execution
WHERE workspace_id = $1 AND admission < $2 AND status = 'RUNNING' AND status = $3
    AND ($4::uuid IS NULL OR definition_id = $4)
ORDER BY admission DESC LIMIT $5
