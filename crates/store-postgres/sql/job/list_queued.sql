-- Queued jobs, newest first: those that wait, and the fresh ones of every line.
SELECT j.id, q.name AS queue, j.kind, j.priority, j.payload, j.created_at, j.trace_context, j.execution_id,
    coalesce(j.max_attempts, q.max_attempts) AS max_attempts, coalesce(j.backoff_base_us, q.backoff_base_us) AS backoff_base_us,
    coalesce(j.backoff_max_us, q.backoff_max_us) AS backoff_max_us, coalesce(j.backoff_factor, q.backoff_factor) AS backoff_factor,
    coalesce(j.backoff_jitter, q.backoff_jitter) AS backoff_jitter, coalesce(j.timeout_us, q.timeout_us) AS timeout_us,
    CASE WHEN e.id IS NOT NULL THEN e.status WHEN r.token IS NOT NULL THEN 'running' ELSE 'queued' END AS status,
    coalesce(w.run_at, j.run_at, j.created_at) AS run_at, coalesce(e.attempts, r.attempt, w.attempts, 0) AS attempts,
    coalesce(e.token, r.token, w.token, 0) AS token, r.worker AS claimed_by, r.claimed_at, r.ends AS lease_expires_at,
    n.progress, coalesce(e.last_error, n.last_error) AS last_error, e.result, e.finished_at, k.key AS dedup_key
FROM (
    SELECT j.* FROM (
        (SELECT w.job_id AS id FROM job_waiting w
        WHERE w.job_id < $2 AND ($3::integer IS NULL OR w.queue_id = $3) ORDER BY w.job_id DESC LIMIT $4)
        UNION ALL
        (SELECT f.id FROM job_line i
        LEFT JOIN LATERAL (
            SELECT c.* FROM job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        CROSS JOIN LATERAL (
            SELECT f.id FROM job f
            WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            UNION ALL
            SELECT f.id FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
            CROSS JOIN LATERAL (
                SELECT f.id FROM job f
                WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                    AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
            ) f
        ) f
        WHERE f.id < $2 AND ($3::integer IS NULL OR i.queue_id = $3) ORDER BY f.id DESC LIMIT $4)
        ORDER BY id DESC LIMIT $4
    ) d
    CROSS JOIN LATERAL (SELECT j.* FROM job j WHERE j.id = d.id LIMIT 1) j
) j
CROSS JOIN LATERAL (SELECT q.* FROM queue q WHERE q.id = j.queue_id LIMIT 1) q
LEFT JOIN LATERAL (SELECT e.* FROM job_end e WHERE e.id = j.id LIMIT 1) e ON true
LEFT JOIN LATERAL (SELECT w.* FROM job_waiting w WHERE w.job_id = j.id LIMIT 1) w ON true
LEFT JOIN LATERAL (SELECT n.* FROM job_note n WHERE n.job_id = j.id LIMIT 1) n ON true
LEFT JOIN LATERAL (
    SELECT k.key FROM job_key k
    WHERE k.job_id = j.id AND (k.holds_until IS NULL OR k.holds_until > coalesce($1::timestamptz, clock_timestamp())) LIMIT 1
) k ON true
CROSS JOIN (SELECT NULL::bigint AS token, NULL::text AS worker, NULL::timestamptz AS claimed_at, NULL::timestamptz AS ends,
    NULL::integer AS attempt) r
ORDER BY j.id DESC
