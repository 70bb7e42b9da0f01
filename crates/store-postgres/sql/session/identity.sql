-- Returns the identity of the server's history, none on a standby, the server process and database alone, and the end of the current snapshot.
SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.concat_ws(' '::text,
        (SELECT s.system_identifier FROM pg_catalog.pg_control_system() s),
        pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8), pg_catalog.pg_postmaster_start_time(),
        (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())) END AS identity,
    pg_catalog.pg_postmaster_start_time() AS server_started_at,
    (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()) AS database,
    pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint AS snapshot_end
