-- Cancels the statement $1, which this role runs in another session.
SELECT pg_cancel_backend(a.pid) AS cancelled FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = current_user AND a.state = 'active'::text AND a.query = $1::text
    AND a.pid <> pg_backend_pid()
