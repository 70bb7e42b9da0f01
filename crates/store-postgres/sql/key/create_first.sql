-- Creates an administrator key if no valid one exists.
INSERT INTO api_key (id, name, kind, hash, created_at)
SELECT $2, $3, 'admin', $4, coalesce($1::timestamptz, statement_timestamp())
WHERE NOT EXISTS (SELECT 1 FROM api_key WHERE kind = 'admin' AND revoked_at IS NULL)
RETURNING id, name, kind, workspace_id, queues, hash, created_at, revoked_at
