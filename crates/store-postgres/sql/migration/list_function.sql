-- Applied functions that exist.
SELECT f.name, f.release, f.checksum
FROM leasehold_function f
WHERE EXISTS (
    SELECT FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = f.name
)
ORDER BY f.name
