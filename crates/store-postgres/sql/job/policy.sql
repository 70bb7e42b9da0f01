-- Returns the attempt number and the retry policy of jobs with these tokens.
SELECT c.id, c.token, l.attempts[array_position(l.ids, c.id)] AS attempt,
    coalesce(j.max_attempts, q.max_attempts) AS max_attempts, coalesce(j.backoff_base_us, q.backoff_base_us) AS backoff_base_us,
    coalesce(j.backoff_max_us, q.backoff_max_us) AS backoff_max_us, coalesce(j.backoff_factor, q.backoff_factor) AS backoff_factor,
    coalesce(j.backoff_jitter, q.backoff_jitter) AS backoff_jitter
FROM unnest($1::bigint[], $2::bigint[]) AS c (id, token)
CROSS JOIN LATERAL (SELECT l.* FROM {schema}.job_lease l WHERE l.token = c.token LIMIT 1) l
CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = c.id LIMIT 1) j
CROSS JOIN LATERAL (SELECT q.* FROM {schema}.queue q WHERE q.id = l.queue_id LIMIT 1) q
WHERE c.id = ANY (l.ids)
