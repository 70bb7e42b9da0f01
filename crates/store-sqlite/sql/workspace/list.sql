-- Lists a page of workspaces that are not deleted, by id.
SELECT id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at
FROM workspace WHERE id > ?1 AND deleted_at IS NULL ORDER BY id LIMIT ?2
