-- Returns how far a primary has written.
SELECT pg_current_wal_lsn()::text AS position
