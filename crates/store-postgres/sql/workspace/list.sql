-- Lists workspaces that are not deleted, after $1.
SELECT id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at FROM {schema}.workspace
WHERE deleted_at IS NULL AND id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY id LIMIT $2
