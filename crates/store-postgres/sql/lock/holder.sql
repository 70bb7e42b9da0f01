-- Returns the last holder of a lock.
SELECT locked_by, timezone('utc', lock_until) AS lock_until FROM {schema}.shedlock WHERE name = $1
