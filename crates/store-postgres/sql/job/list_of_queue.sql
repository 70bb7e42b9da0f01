-- Lists jobs of the queue $3 in all statuses, newest first. Looks among the newest jobs of all queues first; if few of them are the queue's, reads
-- the entries of the queue in the indexes, so that it does not read the jobs of others.
WITH running AS MATERIALIZED (
    SELECT l.token, l.worker, l.claimed_at, l.queue_id, i.id, i.ends, i.attempt
    FROM {schema}.job_lease l CROSS JOIN unnest(l.ids, l.ends, l.attempts) AS i (id, ends, attempt)
    WHERE l.queue_id = $3
), newest AS MATERIALIZED (
    SELECT j.id, j.queue_id FROM {schema}.job j WHERE j.id < $2 ORDER BY j.id DESC LIMIT 1000
), near AS MATERIALIZED (
    SELECT n.id FROM newest n WHERE n.queue_id = $3 ORDER BY n.id DESC LIMIT $4
), enough AS MATERIALIZED (
    SELECT (SELECT count(*) FROM near) >= $4 OR (SELECT count(*) FROM newest) < 1000 AS ok
), listed AS MATERIALIZED (
    SELECT n.id FROM near n WHERE (SELECT e.ok FROM enough e)
    UNION ALL
    (SELECT o.id FROM (
        -- IS TRUE keeps the planner from scanning the primary key.
        SELECT f.id FROM {schema}.job f WHERE f.queue_id = $3 AND f.run_at IS NULL AND (f.id < $2) IS TRUE AND NOT (SELECT e.ok FROM enough e)
        UNION ALL
        (SELECT s.id FROM {schema}.job s WHERE s.queue_id = $3 AND s.run_at IS NOT NULL AND s.id < $2 AND NOT (SELECT e.ok FROM enough e)
        ORDER BY s.id DESC LIMIT $4)
    ) o ORDER BY o.id DESC LIMIT $4)
)
SELECT {job/columns}
FROM listed i CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = i.id LIMIT 1) j
{job/joins}
LEFT JOIN running r ON r.id = j.id
ORDER BY j.id DESC
