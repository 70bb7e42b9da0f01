-- Returns the public functions: those that are SECURITY DEFINER, except those of triggers, which nobody can call.
SELECT p.proname::text AS name, pg_get_function_arguments(p.oid) AS arguments,
    EXISTS (SELECT FROM unnest(p.proconfig) AS c (setting) WHERE c.setting = 'search_path="leasehold", pg_temp') AS pinned,
    has_function_privilege('pg_read_all_stats', p.oid, 'EXECUTE') AS callable
FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'leasehold\_%' AND p.prosecdef
    AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
ORDER BY p.proname
