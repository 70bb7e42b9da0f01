-- Lists the applied migrations, in order.
SELECT number, name, checksum, compatible_from, applied_by FROM leasehold_migration ORDER BY number
