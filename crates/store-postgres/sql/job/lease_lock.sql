-- Locks the pages $1, and the pages in the queues $2 that contain one of the jobs $3, ordered by token.
WITH wanted AS MATERIALIZED (
    SELECT t.token FROM unnest($1::bigint[]) AS t (token)
    UNION
    SELECT l.token FROM {schema}.job_lease l WHERE l.nodes AND l.queue_id = ANY ($2::integer[]) AND l.ids && $3::bigint[]
)
SELECT l.token, l.worker, l.ids, l.ends, l.attempts
FROM {schema}.job_lease l WHERE l.token = ANY (ARRAY(SELECT w.token FROM wanted w))
ORDER BY l.token FOR UPDATE
