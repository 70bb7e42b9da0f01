-- Returns a workspace, deleted or not.
SELECT id, name, plan, limit_override, max_pending_override, max_open_bytes_override, paused, created_at,
    deleted_at FROM {schema}.workspace WHERE id = $1
