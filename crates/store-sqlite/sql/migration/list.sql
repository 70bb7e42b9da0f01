-- Lists the applied migrations, in order.
SELECT number, name, checksum FROM leasehold_migration ORDER BY number
