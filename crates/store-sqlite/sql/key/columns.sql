-- The columns of a key; ?1 is the time.
id, name, kind, workspace_id, queues, access, payloads, hash, created_at, revoked_at, expires_at, last_used_at, successor_id,
    coalesce(expires_at <= ?1, 0) AS is_expired
