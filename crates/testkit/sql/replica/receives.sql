-- Returns whether a replica receives from its primary.
SELECT EXISTS (SELECT FROM pg_stat_wal_receiver) AS receives
