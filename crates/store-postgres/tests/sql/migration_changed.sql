-- Changes the checksum of the first migration, as another build would.
UPDATE leasehold.leasehold_migration SET checksum = 1 WHERE number = 1
