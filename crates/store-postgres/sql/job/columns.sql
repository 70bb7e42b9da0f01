-- The columns of a job j: its own settings or else those of its queue q, its end e, wait w, note n, key k and lease r.
j.id, q.name AS queue, j.kind, j.group_name, j.priority, j.payload, j.created_at, j.trace_context, j.execution_id,
    coalesce(j.max_attempts, q.max_attempts) AS max_attempts, coalesce(j.backoff_base_us, q.backoff_base_us) AS backoff_base_us,
    coalesce(j.backoff_max_us, q.backoff_max_us) AS backoff_max_us, coalesce(j.backoff_factor, q.backoff_factor) AS backoff_factor,
    coalesce(j.backoff_jitter, q.backoff_jitter) AS backoff_jitter, coalesce(j.timeout_us, q.timeout_us) AS timeout_us,
    CASE WHEN e.id IS NOT NULL THEN e.status WHEN r.token IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    coalesce(w.run_at, j.run_at, j.created_at) AS run_at, coalesce(e.attempts, r.attempt, w.attempts, 0) AS attempts,
    coalesce(e.token, r.token, w.token, 0) AS token, r.worker AS claimed_by, r.claimed_at, r.ends AS lease_expires_at,
    n.progress, coalesce(e.last_error, n.last_error) AS last_error, e.result, e.finished_at, k.key AS dedup_key
