-- Fails unless the server process began at p_server_started_at and this database is p_database: the first statement of each transaction behind a pooler.
-- release: 1
-- What a process keeps in memory is valid in one epoch only, and a pooler may have reconnected to another server since. A server process has
-- one system identifier, and one timeline from its promotion on.
CREATE OR REPLACE FUNCTION {schema}.leasehold_begin(p_server_started_at timestamptz, p_database oid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_postmaster_start_time() <> p_server_started_at
        OR (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) IS DISTINCT FROM p_database
    THEN
        RAISE EXCEPTION 'the database server was restarted, failed over or replaced since this process connected to it; the call changed nothing'
            USING ERRCODE = 'LH001', HINT = 'Repeat the call.';
    END IF;
END
$$
