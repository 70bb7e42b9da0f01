-- Lists a page of all keys, by id.
SELECT id, name, kind, workspace_id, queues, hash, created_at, revoked_at
FROM api_key WHERE id > ?1 ORDER BY id LIMIT ?2
