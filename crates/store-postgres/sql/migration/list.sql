-- Lists the applied migrations.
SELECT number, name, checksum FROM leasehold_migration ORDER BY number
