-- Inserts a queue with these settings and this owner unless it exists.
INSERT INTO queue (name, keep_completed, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter, created_at,
    owner_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (name) DO NOTHING
