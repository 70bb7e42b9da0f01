-- Counts the jobs of queue $2 in each status.
SELECT (
        SELECT coalesce(sum(f.fresh), 0)::bigint FROM job_line i
        LEFT JOIN LATERAL (
            SELECT c.* FROM job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        CROSS JOIN LATERAL (
            SELECT count(*) AS fresh FROM job f
            WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            UNION ALL
            SELECT count(*) FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
            CROSS JOIN LATERAL (
                SELECT f.id FROM job f
                WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                    AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
            ) f
        ) f
        WHERE i.queue_id = $2
    ) AS fresh,
    (SELECT count(*) FROM job_waiting w WHERE w.queue_id = $2 AND (w.ready OR w.run_at <= coalesce($1, clock_timestamp()))) AS due,
    (SELECT count(*) FROM job_waiting w
        WHERE w.queue_id = $2 AND NOT w.ready AND w.run_at > coalesce($1, clock_timestamp())) AS scheduled,
    (SELECT coalesce(sum(l.entries), 0)::bigint FROM job_lease l WHERE l.queue_id = $2) AS running,
    (SELECT count(*) FROM job_end e JOIN job j ON j.id = e.id WHERE j.queue_id = $2 AND e.status = 'completed') AS completed,
    (SELECT count(*) FROM job_end e JOIN job j ON j.id = e.id WHERE j.queue_id = $2 AND e.status = 'failed') AS failed
