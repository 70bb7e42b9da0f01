-- Settings of a session, or of the open transaction only if $1: only PostgreSQL's own objects without the name of their schema, stable plans while
-- tables are small, waits for locks no longer than $2, durable commits. A statement_timeout of the role would cancel a rebuild again and again; the
-- program limits each operation itself.
SELECT pg_catalog.set_config('search_path'::text, 'pg_catalog, pg_temp'::text, $1),
    pg_catalog.set_config('default_transaction_isolation'::text, 'read committed'::text, $1),
    pg_catalog.set_config('enable_seqscan'::text, 'off'::text, $1),
    pg_catalog.set_config('enable_bitmapscan'::text, 'off'::text, $1),
    pg_catalog.set_config('jit'::text, 'off'::text, $1),
    pg_catalog.set_config('plan_cache_mode'::text, 'force_generic_plan'::text, $1),
    pg_catalog.set_config('lock_timeout'::text, $2, $1),
    pg_catalog.set_config('statement_timeout'::text, '0'::text, $1),
    pg_catalog.set_config('idle_in_transaction_session_timeout'::text, '15s'::text, $1),
    pg_catalog.set_config('timezone'::text, 'UTC'::text, $1),
    pg_catalog.set_config('synchronous_commit'::text, CASE pg_catalog.current_setting('synchronous_commit'::text) WHEN 'off'::text THEN 'on'::text
        ELSE pg_catalog.current_setting('synchronous_commit'::text) END, $1)
