-- Lets only its owner call the function $1 if it is SECURITY DEFINER and was just created; one that was replaced keeps its grants.
DO $revoke$
DECLARE
    created regprocedure;
BEGIN
    SELECT p.oid INTO created FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = $1 AND p.prosecdef
        AND NOT EXISTS (SELECT FROM leasehold_function f WHERE f.name = $1);
    IF FOUND THEN
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', created);
    END IF;
END
$revoke$
