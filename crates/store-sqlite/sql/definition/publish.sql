-- Counts one more version of a definition and makes it current; nothing if there is no such definition.
UPDATE workflow_definition SET versions = versions + 1, current_version_id = ?3
WHERE id = ?2 AND workspace_id = ?1 AND deleted_at IS NULL
RETURNING versions
