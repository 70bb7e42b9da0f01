-- Who took a lock last.
SELECT locked_by, timezone('utc', lock_until) AS lock_until FROM shedlock WHERE name = $1
