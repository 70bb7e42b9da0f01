-- Lists the versions of a definition after number $3.
SELECT id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at FROM {schema}.workflow_definition_version
WHERE definition_id = $2 AND workspace_id = $1 AND number > coalesce($3, 0)
ORDER BY number LIMIT $4
