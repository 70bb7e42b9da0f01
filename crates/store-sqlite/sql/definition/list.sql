-- Lists a page of a workspace's definitions, by id.
SELECT id, workspace_id, name, current_version_id, created_at
FROM workflow_definition WHERE workspace_id = ?1 AND id > ?2 AND deleted_at IS NULL ORDER BY id LIMIT ?3
