-- Lists the applied migrations.
SELECT number, name, checksum, compatible_from, applied_by FROM {schema}.leasehold_migration ORDER BY number
