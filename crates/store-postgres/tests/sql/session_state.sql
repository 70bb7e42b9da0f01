-- What the session of this connection has that its next user would find.
SELECT pg_backend_pid() AS pid,
    (SELECT count(*) FROM pg_prepared_statements) AS statements,
    (SELECT count(*) FROM pg_listening_channels()) AS channels,
    (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS locks,
    ARRAY(SELECT name || '=' || setting FROM pg_settings WHERE source = 'session'
        AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'IntervalStyle', 'standard_conforming_strings', 'TimeZone')
        ORDER BY name) AS settings,
    current_setting('TimeZone') AS timezone
