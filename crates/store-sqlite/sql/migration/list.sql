-- Every migration that was applied, in order.
SELECT number, name, checksum FROM leasehold_migration ORDER BY number
