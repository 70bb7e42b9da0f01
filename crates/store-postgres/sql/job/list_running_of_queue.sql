-- Lists running jobs of the queue $3, newest first.
WITH running AS MATERIALIZED (
    SELECT l.token, l.worker, l.claimed_at, l.queue_id, i.id, i.ends, i.attempt
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts) AS i (id, ends, attempt)
    WHERE l.queue_id = $3
)
SELECT {job/columns}
FROM (SELECT r.* FROM running r WHERE r.id < $2 ORDER BY r.id DESC LIMIT $4) r
CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = r.id LIMIT 1) j
{job/joins}
ORDER BY j.id DESC
