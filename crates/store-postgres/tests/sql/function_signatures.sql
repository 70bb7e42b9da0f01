-- Returns every Leasehold function with its arguments and result.
SELECT p.proname::text AS name, format('(%s) %s', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)) AS signature
FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'leasehold\_%'
ORDER BY p.proname, p.oid
