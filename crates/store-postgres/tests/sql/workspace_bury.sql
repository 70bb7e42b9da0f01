-- Puts a tombstone on a workspace.
UPDATE workspace SET deleted_at = now() WHERE id = $1
