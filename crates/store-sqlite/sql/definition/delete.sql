-- Marks a definition as deleted.
UPDATE workflow_definition SET deleted_at = ?3 WHERE id = ?2 AND workspace_id = ?1 AND deleted_at IS NULL
RETURNING name
