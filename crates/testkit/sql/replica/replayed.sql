-- Returns whether a replica has replayed everything up to $1.
SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn AS replayed
