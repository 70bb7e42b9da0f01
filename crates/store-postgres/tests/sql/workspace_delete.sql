-- Marks a workspace as deleted.
UPDATE workspace SET deleted_at = now() WHERE id = $1
