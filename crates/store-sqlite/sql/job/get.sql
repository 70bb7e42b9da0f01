-- Reads a job without its lease; waits_or_ended is 0 if the job is fresh or running, and then its lease tells which.
SELECT j.id, j.queue_id, q.name AS queue, j.kind, j.group_name, j.priority, j.payload, j.created_at, j.trace_context, j.execution_id,
    coalesce(j.timeout_us, q.timeout_us) AS timeout_us, coalesce(j.max_attempts, q.max_attempts) AS max_attempts,
    coalesce(j.backoff_base_us, q.backoff_base_us) AS backoff_base_us, coalesce(j.backoff_factor, q.backoff_factor) AS backoff_factor,
    coalesce(j.backoff_max_us, q.backoff_max_us) AS backoff_max_us, coalesce(j.backoff_jitter, q.backoff_jitter) AS backoff_jitter,
    CASE e.failed WHEN 1 THEN 'failed' WHEN 0 THEN 'completed' ELSE 'queued' END AS status,
    coalesce(w.run_at, e.run_at, j.created_at) AS run_at, coalesce(w.attempts, e.attempts, 0) AS attempts,
    coalesce(w.token, e.token, 0) AS token, coalesce(w.attempts, e.attempts) IS NOT NULL AS waits_or_ended,
    NULL AS claimed_by, NULL AS claimed_at, NULL AS lease_expires_at,
    n.progress, coalesce(e.last_error, n.last_error) AS last_error, e.result, e.finished_at, k.key AS dedup_key
FROM job j
JOIN queue q ON q.id = j.queue_id
LEFT JOIN job_waiting w ON w.job_id = j.id
LEFT JOIN job_end e ON e.job_id = j.id
LEFT JOIN job_note n ON n.job_id = j.id
LEFT JOIN job_key k ON k.job_id = j.id AND (k.holds_until IS NULL OR k.holds_until > ?2)
WHERE j.id = ?1
