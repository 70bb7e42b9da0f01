-- Increments the version number of a definition and sets the current version; no row if the definition does not exist.
UPDATE workflow_definition SET versions = versions + 1, current_version_id = ?3
WHERE id = ?2 AND workspace_id = ?1 AND deleted_at IS NULL
RETURNING versions
