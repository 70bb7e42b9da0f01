-- The columns of a queue.
id, name, max_running, paused, keep_completed, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us,
    backoff_jitter, timeout_us, created_at, group_limit
