-- Reads the WAL bytes and the writing transactions since the server's creation.
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::double precision,
    pg_snapshot_xmax(pg_current_snapshot())::text::double precision
