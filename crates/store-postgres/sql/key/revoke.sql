-- Revokes a key; a key that was revoked before keeps its time.
UPDATE api_key SET revoked_at = coalesce(revoked_at, $1::timestamptz, statement_timestamp()) WHERE id = $2
RETURNING id, name, kind, workspace_id, queues, hash, created_at, revoked_at
