-- Counts the jobs of queue $2 in each status. Reads the entries of the queue in indexes, so that it does not read the jobs of others, and the
-- failed jobs of all queues only if they are fewer. Each job is in one state, so those in no other state are completed.
WITH own AS MATERIALIZED (
    SELECT j.id FROM {schema}.job j WHERE j.queue_id = $2 AND j.run_at IS NULL
    UNION ALL
    SELECT j.id FROM {schema}.job j WHERE j.queue_id = $2 AND j.run_at IS NOT NULL
), some_failed AS MATERIALIZED (
    SELECT e.id FROM {schema}.job_end e WHERE e.status = 'failed' ORDER BY e.id LIMIT (SELECT count(*) + 1 FROM own)
), few_failed AS MATERIALIZED (
    SELECT (SELECT count(*) FROM some_failed) <= (SELECT count(*) FROM own) AS ok
), counted AS MATERIALIZED (
    SELECT (SELECT count(*) FROM own) AS jobs,
        (
            SELECT count(*) FROM some_failed s
            CROSS JOIN LATERAL (SELECT 1 FROM {schema}.job j WHERE j.id = s.id AND j.queue_id = $2 LIMIT 1) j
            WHERE (SELECT f.ok FROM few_failed f)
        ) + (
            SELECT count(*) FROM own o
            CROSS JOIN LATERAL (SELECT 1 FROM {schema}.job_end e WHERE e.id = o.id AND e.status = 'failed' LIMIT 1) e
            WHERE NOT (SELECT f.ok FROM few_failed f)
        ) AS failed,
        (
            SELECT coalesce(sum(f.fresh), 0)::bigint FROM {schema}.job_line i
            LEFT JOIN LATERAL (
                SELECT c.* FROM {schema}.job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
                ORDER BY c.version DESC LIMIT 1
            ) c ON true
            CROSS JOIN LATERAL (
                SELECT count(*) AS fresh FROM {schema}.job f
                WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                    AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
                UNION ALL
                SELECT count(*) FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
                CROSS JOIN LATERAL (
                    SELECT f.id FROM {schema}.job f
                    WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                        AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
                ) f
            ) f
            WHERE i.queue_id = $2
        ) AS fresh,
        (
            SELECT count(*) FROM {schema}.job_waiting w WHERE w.queue_id = $2 AND (w.ready OR w.run_at <= coalesce($1, clock_timestamp()))
        ) AS due,
        (
            SELECT count(*) FROM {schema}.job_waiting w
            WHERE w.queue_id = $2 AND NOT w.ready AND w.run_at > coalesce($1, clock_timestamp())
        ) AS scheduled,
        (SELECT coalesce(sum(l.entries), 0)::bigint FROM {schema}.job_lease l WHERE l.queue_id = $2) AS running
)
SELECT fresh, due, scheduled, running, failed, greatest(jobs - fresh - due - scheduled - running - failed, 0) AS completed FROM counted
