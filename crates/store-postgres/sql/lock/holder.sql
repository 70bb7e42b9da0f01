-- Returns the last holder of a lock.
SELECT locked_by, timezone('utc', lock_until) AS lock_until FROM shedlock WHERE name = $1
