-- Revokes EXECUTE from PUBLIC on the function $1 with the signature $2, if it is SECURITY DEFINER and has no record: it was just created.
DO $revoke$
DECLARE
    created regprocedure := pg_catalog.to_regprocedure(
        '{schema}.'::text || $2);
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.oid = created::oid AND p.prosecdef)
        AND NOT EXISTS (SELECT FROM {schema}.leasehold_function f WHERE f.name = $1)
    THEN
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', created);
    END IF;
END
$revoke$
