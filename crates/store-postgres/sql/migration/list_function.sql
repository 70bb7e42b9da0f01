-- Lists the applied functions that exist; those named in $1 with the signatures in $2, others with any.
SELECT f.name, f.release, f.checksum
FROM {schema}.leasehold_function f
LEFT JOIN unnest($1::text[], $2::text[]) AS known (name, signature) ON known.name = f.name
WHERE CASE WHEN known.name IS NULL
    THEN EXISTS (
        SELECT FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = '{schema}'::regnamespace AND p.proname = f.name
    )
    ELSE pg_catalog.to_regprocedure(
        '{schema}.'::text || known.signature) IS NOT NULL
END
ORDER BY f.name
