-- Returns whether a role other than the owner can call a function.
SELECT has_function_privilege('pg_read_all_stats', p.oid, 'EXECUTE') AS callable
FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = $1
