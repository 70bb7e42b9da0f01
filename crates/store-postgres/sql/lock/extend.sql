-- Extends a lock that is still held.
UPDATE shedlock
SET lock_until = timezone('utc', coalesce($1::timestamptz, clock_timestamp())) + $5::bigint::double precision * interval '1 microsecond'
WHERE name = $2 AND locked_by = $3 AND fencing_token = $4
    AND lock_until > timezone('utc', coalesce($1::timestamptz, clock_timestamp()))
RETURNING name
