-- Returns facts about the server: settings, clock, connections, the oldest snapshot, waits for locks. A role without pg_read_all_stats does
-- not see the age of snapshots of other roles.
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::bigint AS version_number,
    pg_is_in_recovery() AS in_recovery, clock_timestamp() AS now,
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS synchronous_commit,
    current_setting('fsync')::boolean AS fsync, current_setting('full_page_writes')::boolean AS full_page_writes,
    current_setting('autovacuum')::boolean AS autovacuum,
    current_setting('max_connections')::bigint AS max_connections,
    (SELECT sum(numbackends)::bigint FROM pg_stat_database) AS connections,
    (SELECT numbackends::bigint FROM pg_stat_database WHERE datname = current_database()) AS ours,
    (SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE NOT l.granted AND a.datname = current_database()) AS lock_waits,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND xact_start IS NULL AND query_start IS NULL
        AND datname = current_database() AND pid <> pg_backend_pid()
        AND NOT pg_has_role('pg_read_all_stats', 'USAGE')) AS unseen_snapshots,
    -- What attaching and dropping partitions of the event log requires; NULL without a schema.
    (SELECT pg_has_role(c.relowner, 'USAGE') AND has_schema_privilege(c.relnamespace, 'CREATE') FROM pg_class c
        WHERE c.relname = 'request_event' AND c.relnamespace = to_regnamespace('{schema}')::oid) AS advances_event_log,
    (SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database()) AS wraparound_age,
    (extract(epoch FROM clock_timestamp() - s.since) * 1000000::numeric)::bigint AS snapshot_us, s.whose AS snapshot_of
FROM (SELECT 1) one LEFT JOIN LATERAL (
    SELECT since, whose FROM (
        SELECT coalesce(xact_start, query_start) AS since, format('session %s of %s%s', pid, coalesce(usename, '?'),
            CASE WHEN application_name <> '' THEN ', ' || application_name ELSE '' END) AS whose
        FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL AND backend_type IS DISTINCT FROM 'autovacuum worker'
            AND datname = current_database()
        UNION ALL
        SELECT prepared, format('prepared transaction %s', gid) FROM pg_prepared_xacts WHERE database = current_database()
    ) held
    WHERE since IS NOT NULL ORDER BY since LIMIT 1
) s ON true
