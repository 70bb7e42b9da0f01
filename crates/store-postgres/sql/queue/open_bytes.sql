-- Returns the bytes of at most $3 open jobs of the queues $1: their payloads and progress as stored, and $2 for each.
SELECT coalesce(sum(o.bytes), 0)::bigint AS bytes
FROM (
    SELECT pg_column_size(f.payload) + $2::bigint AS bytes
    FROM {schema}.queue q JOIN {schema}.job_line i ON i.queue_id = q.id
    LEFT JOIN LATERAL (
        SELECT c.* FROM {schema}.job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
        ORDER BY c.version DESC LIMIT 1
    ) c ON true
    CROSS JOIN LATERAL (
        SELECT f.payload FROM {schema}.job f
        WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
            AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
        UNION ALL
        SELECT f.payload FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
        CROSS JOIN LATERAL (
            SELECT f.payload FROM {schema}.job f
            WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
        ) f
    ) f
    WHERE q.name = ANY ($1::text[])
    UNION ALL
    SELECT pg_column_size(j.payload) + coalesce(pg_column_size(o.progress), 0) + $2
    FROM {schema}.queue q JOIN {schema}.job_waiting w ON w.queue_id = q.id AND w.ready AND w.group_name IS NULL
    JOIN {schema}.job j ON j.id = w.job_id
    LEFT JOIN {schema}.job_note o ON o.job_id = j.id
    WHERE q.name = ANY ($1)
    UNION ALL
    SELECT pg_column_size(j.payload) + coalesce(pg_column_size(o.progress), 0) + $2
    FROM {schema}.queue q JOIN {schema}.job_waiting w ON w.queue_id = q.id AND w.ready AND w.group_name IS NOT NULL
    JOIN {schema}.job j ON j.id = w.job_id
    LEFT JOIN {schema}.job_note o ON o.job_id = j.id
    WHERE q.name = ANY ($1)
    UNION ALL
    SELECT pg_column_size(j.payload) + coalesce(pg_column_size(o.progress), 0) + $2
    FROM {schema}.queue q JOIN {schema}.job_waiting w ON w.queue_id = q.id AND NOT w.ready JOIN {schema}.job j ON j.id = w.job_id
    LEFT JOIN {schema}.job_note o ON o.job_id = j.id
    WHERE q.name = ANY ($1)
    UNION ALL
    SELECT pg_column_size(j.payload) + coalesce(pg_column_size(o.progress), 0) + $2
    FROM {schema}.queue q JOIN {schema}.job_lease l ON l.queue_id = q.id CROSS JOIN LATERAL unnest(l.ids) AS e (id) JOIN {schema}.job j ON j.id = e.id
    LEFT JOIN {schema}.job_note o ON o.job_id = j.id
    WHERE q.name = ANY ($1)
    LIMIT $3
) o
