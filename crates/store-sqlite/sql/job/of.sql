-- What is needed of a job to place it anew.
SELECT queue_id, priority, created_at, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter,
    execution_id, node
FROM job WHERE id = ?1
