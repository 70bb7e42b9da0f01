-- Lists completed jobs of all queues, newest first.
SELECT {job/columns}
FROM (
    SELECT j.* FROM {schema}.job_end d CROSS JOIN LATERAL (SELECT j.* FROM {schema}.job j WHERE j.id = d.id LIMIT 1) j
    WHERE d.id < $2 AND d.status = 'completed'
    ORDER BY d.id DESC LIMIT $3
) j
{job/joins}
CROSS JOIN (SELECT NULL::bigint AS token, NULL::text AS worker, NULL::timestamptz AS claimed_at, NULL::timestamptz AS ends,
    NULL::integer AS attempt) r
ORDER BY j.id DESC
