-- Deletes keys whose window has passed.
DELETE FROM {schema}.job_key k WHERE (k.queue_id, k.key) IN (
    SELECT d.queue_id, d.key FROM {schema}.job_key d
    WHERE d.holds_until <= coalesce($1::timestamptz, clock_timestamp())
    ORDER BY d.holds_until LIMIT $2 FOR UPDATE SKIP LOCKED
)
