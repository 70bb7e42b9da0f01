-- Returns the definition with this name in a workspace.
SELECT id, workspace_id, name, current_version_id, created_at FROM {schema}.workflow_definition
WHERE workspace_id = $1 AND name = $2 AND deleted_at IS NULL
