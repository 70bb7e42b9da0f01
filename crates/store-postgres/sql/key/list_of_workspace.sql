-- Lists the keys of workspace $3 after $1, by id.
SELECT id, name, kind, workspace_id, queues, hash, created_at, revoked_at FROM api_key
WHERE workspace_id = $3 AND id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $2
