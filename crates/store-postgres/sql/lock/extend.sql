-- Extends a lock that is still held. Does not wait long for a locked row: its holder goes on meanwhile, and renewals use the same connections.
WITH limits AS MATERIALIZED (
    SELECT set_config('lock_timeout', '50ms', true)
)
UPDATE {schema}.shedlock
SET lock_until = timezone('utc', coalesce($1::timestamptz, clock_timestamp())) + $5::bigint::double precision * interval '1 microsecond'
FROM limits
WHERE name = $2 AND locked_by = $3 AND fencing_token = $4
    AND lock_until > timezone('utc', coalesce($1::timestamptz, clock_timestamp()))
RETURNING name
