-- Returns whether the tables of applied migrations and functions exist.
SELECT pg_catalog.to_regclass('{schema}.leasehold_migration') IS NOT NULL AS migrations,
    pg_catalog.to_regclass('{schema}.leasehold_function') IS NOT NULL AS functions
