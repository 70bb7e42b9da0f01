-- Takes the free ones of these keys, in one order so that concurrent calls cannot deadlock. Returns which were taken.
INSERT INTO {schema}.job_key AS k (queue_id, key, job_id, holds_until)
SELECT g.queue_id, g.key, g.job_id, coalesce($1::timestamptz, clock_timestamp()) + g.window_us::double precision * interval '1 microsecond'
FROM unnest($2::integer[], $3::text[], $4::bigint[], $5::bigint[]) AS g (queue_id, key, job_id, window_us)
ORDER BY g.queue_id, g.key COLLATE "C"
ON CONFLICT (queue_id, key) DO NOTHING
RETURNING k.job_id
