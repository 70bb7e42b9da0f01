-- Revokes a key; a revoked key keeps its first revoked_at.
UPDATE api_key SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1
RETURNING id, name, kind, workspace_id, queues, hash, created_at, revoked_at
