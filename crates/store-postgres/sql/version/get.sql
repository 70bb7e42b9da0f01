-- Returns a version of a workspace.
SELECT id, workspace_id, definition_id, number, body, params_schema, execution_timeout_ms, created_at FROM {schema}.workflow_definition_version WHERE id = $2 AND workspace_id = $1
