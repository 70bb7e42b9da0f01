-- Settings of every connection: only PostgreSQL's own objects without the name of their schema, stable plans while tables are small, bounded
-- waits for locks, durable commits. A statement_timeout of the role would cancel a rebuild again and again; the program limits each operation itself.
SELECT set_config('search_path', 'pg_catalog, pg_temp', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('lock_timeout', '2s', false),
    set_config('statement_timeout', '0', false),
    set_config('idle_in_transaction_session_timeout', '15s', false),
    set_config('timezone', 'UTC', false),
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)
