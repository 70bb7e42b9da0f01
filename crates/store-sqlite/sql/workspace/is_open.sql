-- Whether the workspace is there and not deleted.
SELECT EXISTS (SELECT 1 FROM workspace WHERE id = ?1 AND deleted_at IS NULL)
