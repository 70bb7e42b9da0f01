-- Changes the checksum of an applied migration.
UPDATE leasehold_migration SET checksum = checksum + 1 WHERE number = 3
