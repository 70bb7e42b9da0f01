-- Reads the fields of a job that are needed to requeue or end it.
SELECT queue_id, priority, created_at, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter,
    execution_id, node, group_name
FROM job WHERE id = ?1
