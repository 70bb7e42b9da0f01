-- Deletes the records of functions that do not exist (any more), so that they are created again.
DELETE FROM leasehold_function f
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = f.name
)
