-- Lists failed jobs of the queue $3, newest first. Looks among the newest failed jobs of all queues first; if few of them are the queue's, reads
-- the entries of the queue in the indexes.
WITH newest AS MATERIALIZED (
    SELECT d.id FROM {schema}.job_end d WHERE d.id < $2 AND d.status = 'failed' ORDER BY d.id DESC LIMIT 1000
), near AS MATERIALIZED (
    SELECT n.id FROM newest n CROSS JOIN LATERAL (SELECT j.queue_id FROM {schema}.job j WHERE j.id = n.id LIMIT 1) j
    WHERE j.queue_id = $3 ORDER BY n.id DESC LIMIT $4
), enough AS MATERIALIZED (
    SELECT (SELECT count(*) FROM near) >= $4 OR (SELECT count(*) FROM newest) < 1000 AS ok
), listed AS MATERIALIZED (
    SELECT n.id FROM near n WHERE (SELECT e.ok FROM enough e)
    UNION ALL
    (SELECT o.id FROM (
        SELECT a.id FROM (
            -- IS TRUE keeps the planner from scanning the primary key.
            SELECT f.id FROM {schema}.job f WHERE f.queue_id = $3 AND f.run_at IS NULL AND (f.id < $2) IS TRUE AND NOT (SELECT e.ok FROM enough e)
            UNION ALL
            SELECT s.id FROM {schema}.job s WHERE s.queue_id = $3 AND s.run_at IS NOT NULL AND s.id < $2 AND NOT (SELECT e.ok FROM enough e)
        ) a ORDER BY a.id DESC OFFSET 0
    ) o CROSS JOIN LATERAL (SELECT 1 FROM {schema}.job_end d WHERE d.id = o.id AND d.status = 'failed' LIMIT 1) d
    ORDER BY o.id DESC LIMIT $4)
)
SELECT {job/columns}
FROM listed i CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = i.id LIMIT 1) j
{job/joins}
CROSS JOIN (SELECT NULL::bigint AS token, NULL::text AS worker, NULL::timestamptz AS claimed_at, NULL::timestamptz AS ends,
    NULL::integer AS attempt) r
ORDER BY j.id DESC
