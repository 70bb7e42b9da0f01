-- Makes an applied migration look as if its text had been another.
UPDATE leasehold_migration SET checksum = checksum + 1 WHERE number = 3
