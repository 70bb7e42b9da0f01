-- A page of queues by name.
SELECT id, name, max_running, paused, keep_completed, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us,
    backoff_jitter, timeout_us, created_at
FROM queue WHERE name > ?1 ORDER BY name LIMIT ?2
