-- What the server says of itself: settings, clock, connections, the oldest snapshot, waits for locks. Needs no rights beyond those of a user.
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::bigint AS version_number,
    pg_is_in_recovery() AS in_recovery, clock_timestamp() AS now,
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS synchronous_commit,
    current_setting('fsync')::boolean AS fsync, current_setting('full_page_writes')::boolean AS full_page_writes,
    current_setting('autovacuum')::boolean AS autovacuum,
    current_setting('max_connections')::bigint AS max_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()) AS ours,
    (SELECT count(*) FROM pg_locks l WHERE NOT l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS lock_waits,
    (SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database()) AS wraparound_age,
    (extract(epoch FROM clock_timestamp() - s.since) * 1000000)::bigint AS snapshot_us, s.whose AS snapshot_of
FROM (SELECT 1) one LEFT JOIN LATERAL (
    SELECT since, whose FROM (
        SELECT coalesce(xact_start, query_start) AS since, format('session %s of %s%s', pid, coalesce(usename, '?'),
            CASE WHEN application_name <> '' THEN ', ' || application_name ELSE '' END) AS whose
        FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL AND backend_type <> 'autovacuum worker'
            AND datname = current_database()
        UNION ALL
        SELECT prepared, format('prepared transaction %s', gid) FROM pg_prepared_xacts WHERE database = current_database()
    ) held
    WHERE since IS NOT NULL ORDER BY since LIMIT 1
) s ON true
