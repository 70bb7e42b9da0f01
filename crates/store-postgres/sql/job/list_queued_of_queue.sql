-- Lists queued jobs of the queue $3, newest first: waiting ones and the fresh ones of its lines.
SELECT {job/columns}
FROM (
    SELECT j.* FROM (
        (SELECT w.id FROM (
            SELECT w.job_id AS id FROM {schema}.job_waiting w WHERE w.queue_id = $3 AND w.ready AND w.group_name IS NULL AND w.job_id < $2
            UNION ALL
            SELECT w.job_id FROM {schema}.job_waiting w WHERE w.queue_id = $3 AND w.ready AND w.group_name IS NOT NULL AND w.job_id < $2
            UNION ALL
            SELECT w.job_id FROM {schema}.job_waiting w WHERE w.queue_id = $3 AND NOT w.ready AND w.job_id < $2
        ) w ORDER BY w.id DESC LIMIT $4)
        UNION ALL
        (SELECT f.id FROM {schema}.job_line i
        LEFT JOIN LATERAL (
            SELECT c.* FROM {schema}.job_cursor c WHERE c.queue_id = i.queue_id AND c.priority = i.priority
            ORDER BY c.version DESC LIMIT 1
        ) c ON true
        CROSS JOIN LATERAL (
            SELECT f.id FROM {schema}.job f
            WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                AND (f.xid, f.id) > (coalesce(c.at_xid, '0'), coalesce(c.at_id, 0))
            UNION ALL
            SELECT f.id FROM unnest(c.late_xid, c.late_id) AS p (xid, id)
            CROSS JOIN LATERAL (
                SELECT f.id FROM {schema}.job f
                WHERE f.queue_id = i.queue_id AND f.priority = i.priority AND f.run_at IS NULL
                    AND (f.xid, f.id) > (p.xid, p.id) AND f.xid <= p.xid
            ) f
        ) f
        WHERE f.id < $2 AND i.queue_id = $3 ORDER BY f.id DESC LIMIT $4)
        ORDER BY id DESC LIMIT $4
    ) d
    CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = d.id LIMIT 1) j
) j
{job/joins}
CROSS JOIN (SELECT NULL::bigint AS token, NULL::text AS worker, NULL::timestamptz AS claimed_at, NULL::timestamptz AS ends,
    NULL::integer AS attempt) r
ORDER BY j.id DESC
