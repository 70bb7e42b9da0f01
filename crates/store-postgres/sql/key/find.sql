-- Returns the key with this hash, revoked or not.
SELECT id, name, kind, workspace_id, queues, hash, created_at, revoked_at FROM api_key WHERE hash = $1
