-- Lists executions of a workspace admitted before $2, newest first, with filters.
SELECT {execution/columns}
FROM {schema}.workflow_execution
WHERE workspace_id = $1 AND admission < $2 AND ($3::text IS NULL OR status = $3) AND ($4::uuid IS NULL OR definition_id = $4)
ORDER BY admission DESC LIMIT $5
