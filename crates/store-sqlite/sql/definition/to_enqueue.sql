-- What an enqueue must know of a definition: whose it is, whether it is deleted, and its current version.
SELECT workspace_id, deleted_at IS NOT NULL AS deleted, current_version_id FROM workflow_definition WHERE id = ?1
