-- Changes the checksum of the first migration, as another build would.
WITH gone AS (DELETE FROM leasehold_migration WHERE number = 999)
UPDATE leasehold_migration SET checksum = 1 WHERE number = 1
