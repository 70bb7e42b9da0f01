-- Returns a job in any status.
SELECT {job/columns}
FROM {schema}.job j
{job/joins}
LEFT JOIN LATERAL (
    SELECT l.token, l.worker, l.claimed_at, l.ends[array_position(l.ids, j.id)] AS ends,
        l.attempts[array_position(l.ids, j.id)] AS attempt
    FROM {schema}.job_lease l WHERE e.id IS NULL AND l.queue_id = j.queue_id AND j.id = ANY (l.ids) LIMIT 1
) r ON true
WHERE j.id = $2
