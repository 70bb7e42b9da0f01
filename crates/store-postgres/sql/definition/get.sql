-- Returns a definition of a workspace.
SELECT id, workspace_id, name, current_version_id, created_at FROM {schema}.workflow_definition WHERE id = $2 AND workspace_id = $1 AND deleted_at IS NULL
