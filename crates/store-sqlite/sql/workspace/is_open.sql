-- Whether the workspace exists and is not deleted.
SELECT EXISTS (SELECT 1 FROM workspace WHERE id = ?1 AND deleted_at IS NULL)
