-- A job with all that is known of it but its lease. Read by place: a list reads it for each of its jobs.
SELECT j.id, q.name, j.kind, j.priority, j.payload, j.created_at, j.trace_context,
    j.timeout_us, j.max_attempts, j.backoff_base_us, j.backoff_factor, j.backoff_max_us, j.backoff_jitter,
    q.timeout_us, q.max_attempts, q.backoff_base_us, q.backoff_factor, q.backoff_max_us, q.backoff_jitter,
    coalesce(w.run_at, e.run_at), coalesce(w.attempts, e.attempts), coalesce(w.token, e.token),
    e.failed, e.finished_at, e.result, coalesce(e.last_error, n.last_error), n.progress, k.key, j.execution_id
FROM job j
JOIN queue q ON q.id = j.queue_id
LEFT JOIN job_waiting w ON w.job_id = j.id
LEFT JOIN job_end e ON e.job_id = j.id
LEFT JOIN job_note n ON n.job_id = j.id
LEFT JOIN job_key k ON k.job_id = j.id AND (k.holds_until IS NULL OR k.holds_until > ?2)
WHERE j.id = ?1
