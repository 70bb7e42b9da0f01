-- Rejects options of a public function that are not a JSON object or not known to the function.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_options(called text, options jsonb, known text[]) RETURNS void
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    unknown text;
BEGIN
    IF jsonb_typeof(options) <> 'object' THEN
        RAISE EXCEPTION '%: options must be a JSON object, not %', called, jsonb_typeof(options)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT o.name INTO unknown FROM jsonb_object_keys(options) AS o (name) WHERE o.name <> ALL (known) ORDER BY o.name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '%: unknown option "%"', called, unknown
            USING ERRCODE = 'invalid_parameter_value',
                HINT = CASE WHEN pg_catalog.cardinality(known) = 0 THEN 'This version has no options.'
                    ELSE 'Options of this version: ' || pg_catalog.array_to_string(known, ', ') END;
    END IF;
END
$$
