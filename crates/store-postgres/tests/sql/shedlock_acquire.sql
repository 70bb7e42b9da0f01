-- Acquires a lock as ShedLock does with the database's time.
INSERT INTO leasehold.shedlock (name, lock_until, locked_at, locked_by)
VALUES ($1, timezone('utc', CURRENT_TIMESTAMP) + interval '60 seconds', timezone('utc', CURRENT_TIMESTAMP), $2)
ON CONFLICT (name) DO UPDATE
SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + interval '60 seconds',
    locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $2
WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)
