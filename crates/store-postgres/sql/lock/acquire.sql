-- Acquires a lock if it is free; returns no row otherwise.
INSERT INTO shedlock AS held (name, lock_until, locked_at, locked_by)
SELECT $2, clock.now + $4::bigint::double precision * interval '1 microsecond', clock.now, $3
FROM (SELECT timezone('utc', coalesce($1::timestamptz, statement_timestamp())) AS now) clock
ON CONFLICT (name) DO UPDATE
SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by,
    fencing_token = held.fencing_token + 1
WHERE held.lock_until <= timezone('utc', coalesce($1::timestamptz, clock_timestamp()))
RETURNING fencing_token, timezone('utc', lock_until) AS lock_until
