-- Returns the jobs that hold these keys.
SELECT k.queue_id, k.key, k.job_id FROM unnest($2::integer[], $3::text[]) AS g (queue_id, key)
CROSS JOIN LATERAL (
    SELECT k.* FROM {schema}.job_key k
    WHERE k.queue_id = g.queue_id AND k.key = g.key
        AND (k.holds_until IS NULL OR k.holds_until > coalesce($1::timestamptz, clock_timestamp()))
    LIMIT 1
) k
