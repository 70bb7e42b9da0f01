-- Deletes the record of the function $1 if no function with the signature $2 exists, so that it is created again; filled in as text.
DELETE FROM {schema}.leasehold_function f
WHERE f.name = $1
    AND pg_catalog.to_regprocedure('{schema}.'::text || $2) IS NULL
