-- Terminates the connection that holds the notify lock, and returns whether there was one.
SELECT count(pg_terminate_backend(pid)) AS terminated FROM pg_locks
WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) + objid::bigint = 7308332187
