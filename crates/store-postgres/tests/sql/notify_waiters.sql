-- Counts the sessions that hold the notify lock: one or none.
SELECT count(*) AS waiters FROM pg_locks
WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) + objid::bigint = 7308332187
