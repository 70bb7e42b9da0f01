-- Bytes of the log and transactions that wrote, both since the server was made.
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::double precision,
    pg_snapshot_xmax(pg_current_snapshot())::text::double precision
