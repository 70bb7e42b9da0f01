-- Lists jobs of all queues in all statuses, newest first.
WITH running AS MATERIALIZED (
    SELECT l.token, l.worker, l.claimed_at, l.queue_id, i.id, i.ends, i.attempt
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts) AS i (id, ends, attempt)
)
SELECT {job/columns}
FROM (SELECT j.* FROM {schema}.job j WHERE j.id < $2 ORDER BY j.id DESC LIMIT $3) j
{job/joins}
LEFT JOIN running r ON r.id = j.id
ORDER BY j.id DESC
