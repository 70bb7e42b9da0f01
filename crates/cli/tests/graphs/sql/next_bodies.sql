-- Returns the name, the body and the recorded release of every function.
SELECT p.proname::text AS name, p.prosrc AS body, f.release FROM pg_proc p JOIN leasehold_function f ON f.name = p.proname
WHERE p.pronamespace = current_schema()::regnamespace
ORDER BY p.proname, p.oid
