-- Lists a page of a workspace's keys, by id.
SELECT id, name, kind, workspace_id, queues, hash, created_at, revoked_at
FROM api_key WHERE workspace_id = ?3 AND id > ?1 ORDER BY id LIMIT ?2
