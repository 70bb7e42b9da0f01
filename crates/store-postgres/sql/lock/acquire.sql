-- Acquires a lock if it is free; returns no row otherwise. Does not touch the row of a lock that is held, and does not wait long for a locked one.
-- The trigger of the insert sets a token above those of earlier epochs.
INSERT INTO {schema}.shedlock AS held (name, lock_until, locked_at, locked_by)
SELECT $2::text, clock.now + $4::bigint::double precision * interval '1 microsecond', clock.now, $3::text
FROM (SELECT timezone('utc', coalesce($1::timestamptz, statement_timestamp())) AS now) clock,
    (SELECT set_config('lock_timeout', '50ms', true)) limits
WHERE NOT EXISTS (SELECT 1 FROM {schema}.shedlock s WHERE s.name = $2::text AND s.lock_until > clock.now)
ON CONFLICT (name) DO UPDATE
SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by,
    fencing_token = greatest(held.fencing_token + 1, excluded.fencing_token)
WHERE held.lock_until <= timezone('utc', coalesce($1::timestamptz, clock_timestamp()))
RETURNING fencing_token, timezone('utc', lock_until) AS lock_until
