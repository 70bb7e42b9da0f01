-- Whether the tables of applied migrations and functions exist.
SELECT to_regclass('leasehold_migration') IS NOT NULL AS migrations,
    to_regclass('leasehold_function') IS NOT NULL AS functions
