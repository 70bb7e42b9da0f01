-- Reads ready waiting jobs of a group of a queue ('': the jobs without group), in claim order, and waiting rows whose job was deleted by hand.
SELECT w.job_id, j.priority, j.created_at, j.kind, j.payload, j.max_attempts, j.backoff_base_us, j.backoff_factor, j.backoff_max_us,
    j.backoff_jitter, j.timeout_us, j.trace_context, j.node IS NOT NULL, w.attempts, w.run_at, n.last_error, n.progress, j.id IS NULL, j.group_name
FROM job_waiting w INDEXED BY job_waiting_line
LEFT JOIN job j ON j.id = w.job_id
LEFT JOIN job_note n ON n.job_id = w.job_id
WHERE w.queue_id = ?1 AND w.group_name = ?3 AND w.ready = 1
ORDER BY w.priority DESC, w.created_at, w.job_id LIMIT ?2 OFFSET ?4
