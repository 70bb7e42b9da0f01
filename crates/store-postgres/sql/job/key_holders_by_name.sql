-- Returns the jobs that hold keys in queues, given by name, by position in the arrays.
SELECT g.nth, k.job_id FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS g (queue, key, nth)
CROSS JOIN LATERAL (
    SELECT k.job_id FROM {schema}.queue q JOIN {schema}.job_key k ON k.queue_id = q.id AND k.key = g.key
    WHERE q.name = g.queue AND (k.holds_until IS NULL OR k.holds_until > coalesce($1::timestamptz, clock_timestamp()))
    LIMIT 1
) k
