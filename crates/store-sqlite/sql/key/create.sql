-- Inserts a key; a workspace key only if its workspace exists and is not deleted.
INSERT INTO api_key (id, name, kind, workspace_id, queues, hash, created_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE ?4 IS NULL OR EXISTS (SELECT 1 FROM workspace WHERE id = ?4 AND deleted_at IS NULL)
RETURNING id, name, kind, workspace_id, queues, hash, created_at, revoked_at
