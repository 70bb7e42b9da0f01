-- Lists the definitions of a workspace after $2.
SELECT id, workspace_id, name, current_version_id, created_at FROM {schema}.workflow_definition
WHERE workspace_id = $1 AND deleted_at IS NULL AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY id LIMIT $3
