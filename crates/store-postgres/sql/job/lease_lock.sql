-- Holds the pages $1, and those in the queues $2 that have one of the jobs $3, until the transaction ends, in the order of their numbers.
WITH wanted AS MATERIALIZED (
    SELECT t.token FROM unnest($1::bigint[]) AS t (token)
    UNION
    SELECT l.token FROM job_lease l WHERE l.nodes AND l.queue_id = ANY ($2::integer[]) AND l.ids && $3::bigint[]
)
SELECT l.token, l.worker, l.ids, l.ends, l.attempts
FROM job_lease l WHERE l.token = ANY (ARRAY(SELECT w.token FROM wanted w))
ORDER BY l.token FOR UPDATE
