-- Reads what an enqueue needs of a definition: its workspace, whether it is deleted, its current version.
SELECT workspace_id, deleted_at IS NOT NULL AS deleted, current_version_id FROM workflow_definition WHERE id = ?1
