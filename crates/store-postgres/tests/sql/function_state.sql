-- Returns the existing Leasehold functions with their bodies, grants and recorded releases.
SELECT p.proname::text AS name, p.prosrc AS body, coalesce(p.proacl::text, '') AS grants, f.release
FROM pg_proc p LEFT JOIN leasehold.leasehold_function f ON f.name = p.proname
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'leasehold\_%'
ORDER BY p.proname, p.oid
