-- The columns of a key; $1 is the time that a test gives.
id, name, kind, workspace_id, queues, access, payloads, hash, created_at, revoked_at, expires_at, last_used_at, successor_id,
    coalesce(expires_at <= coalesce($1::timestamptz, statement_timestamp()), false) AS is_expired
