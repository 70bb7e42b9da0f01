-- Creates the schema, unless an administrator created it for a role that may not. Other roles must not create objects in it.
DO $prepare$
DECLARE
    found oid := pg_catalog.to_regnamespace('{schema}')::oid;
BEGIN
    IF found IS NULL THEN
        CREATE SCHEMA {schema};
    ELSIF pg_catalog.has_schema_privilege('public'::name, found, 'CREATE'::text) THEN
        RAISE EXCEPTION 'every role may create objects in schema {schema}: run REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$prepare$
