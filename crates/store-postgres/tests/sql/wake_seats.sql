-- How many sleepers have everybody notify them: one or none.
SELECT count(*) AS seats FROM pg_locks
WHERE locktype = 'advisory' AND granted AND mode = 'ExclusiveLock' AND database =
    (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) + objid::bigint = 7308332187
