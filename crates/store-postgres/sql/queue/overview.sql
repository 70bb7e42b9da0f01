-- Returns the $2 queues with the most running jobs, and how many jobs of each are claimable now, counted up to $3.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, clock_timestamp()) AS now
), running AS MATERIALIZED (
    SELECT queue_id, sum(entries)::bigint AS running FROM {schema}.job_lease GROUP BY queue_id
), shown AS MATERIALIZED (
    SELECT q.*, coalesce(r.running, 0) AS running FROM {schema}.queue q LEFT JOIN running r ON r.queue_id = q.id
    ORDER BY coalesce(r.running, 0) DESC, q.name COLLATE "C" LIMIT $2
)
SELECT s.running, w.waiting, {queue/columns}
FROM shown s CROSS JOIN clock CROSS JOIN LATERAL (
    SELECT count(*) AS waiting FROM (
        SELECT 1 FROM {schema}.job_waiting w WHERE w.queue_id = s.id AND w.ready AND w.group_name IS NULL
        UNION ALL
        SELECT 1 FROM {schema}.job_waiting w WHERE w.queue_id = s.id AND w.ready AND w.group_name IS NOT NULL
        UNION ALL
        SELECT 1 FROM {schema}.job_waiting w WHERE w.queue_id = s.id AND NOT w.ready AND w.run_at <= clock.now
        UNION ALL
        SELECT 1 FROM {schema}.job_line i
        LEFT JOIN LATERAL (
            SELECT c.* FROM {schema}.job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.job f
            WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            UNION ALL
            SELECT 1 FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
            CROSS JOIN LATERAL (
                SELECT f.id FROM {schema}.job f
                WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                    AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
            ) f
        ) f
        WHERE i.queue_id = s.id
        LIMIT $3
    ) found
) w
ORDER BY s.running DESC, s.name COLLATE "C"
