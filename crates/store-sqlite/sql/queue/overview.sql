-- The ?1 queues with the most running jobs.
SELECT id, name, max_running, paused, keep_completed, lease_us, max_attempts, backoff_base_us, backoff_factor, backoff_max_us,
    backoff_jitter, timeout_us, created_at, coalesce((
        SELECT sum(size) FROM job_lease INDEXED BY job_lease_of_queue WHERE queue_id = queue.id), 0) AS running
FROM queue ORDER BY running DESC, name LIMIT ?1
