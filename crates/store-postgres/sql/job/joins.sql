-- The joins for the columns of a job j: its queue and its end, wait, note and key.
CROSS JOIN LATERAL (SELECT q.* FROM {schema}.queue q WHERE q.id = j.queue_id LIMIT 1) q
LEFT JOIN LATERAL (SELECT e.* FROM {schema}.job_end e WHERE e.id = j.id LIMIT 1) e ON true
LEFT JOIN LATERAL (SELECT w.* FROM {schema}.job_waiting w WHERE w.job_id = j.id LIMIT 1) w ON true
LEFT JOIN LATERAL (SELECT n.* FROM {schema}.job_note n WHERE n.job_id = j.id LIMIT 1) n ON true
LEFT JOIN LATERAL (
    SELECT k.key FROM {schema}.job_key k
    WHERE k.job_id = j.id AND (k.holds_until IS NULL OR k.holds_until > coalesce($1::timestamptz, clock_timestamp())) LIMIT 1
) k ON true
