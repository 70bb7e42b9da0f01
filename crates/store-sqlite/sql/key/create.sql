-- Inserts a key; a workspace key only if its workspace exists and is not deleted.
INSERT INTO api_key (id, name, kind, workspace_id, queues, access, payloads, hash, created_at, expires_at)
SELECT ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?1, ?10
WHERE ?5 IS NULL OR EXISTS (SELECT 1 FROM workspace WHERE id = ?5 AND deleted_at IS NULL)
RETURNING {key/columns}
