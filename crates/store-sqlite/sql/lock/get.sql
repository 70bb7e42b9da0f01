-- Reads a named lock.
SELECT name, locked_by, locked_at, lock_until, fencing_token FROM shedlock WHERE name = ?1
