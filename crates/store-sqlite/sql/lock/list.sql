-- Lists all locks, by name.
SELECT name, locked_by, locked_at, lock_until, fencing_token FROM shedlock ORDER BY name
