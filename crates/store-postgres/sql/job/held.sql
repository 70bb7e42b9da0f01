-- Returns those of the claims ($3, $4) that the worker $2 still holds.
SELECT c.id, c.token FROM unnest($3::bigint[], $4::bigint[]) AS c (id, token)
CROSS JOIN LATERAL (SELECT l.* FROM {schema}.job_lease l WHERE l.token = c.token AND l.worker = $2 LIMIT 1) l
WHERE l.ends[array_position(l.ids, c.id)] > coalesce($1::timestamptz, clock_timestamp())
