-- Reads the jobs of a part of a run.
SELECT id, priority, created_at, kind, payload, max_attempts, backoff_base_us, backoff_factor, backoff_max_us, backoff_jitter,
    timeout_us, trace_context, node IS NOT NULL
FROM job WHERE id BETWEEN ?1 AND ?2 ORDER BY id
