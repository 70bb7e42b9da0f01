-- Records a migration that only a newer version knows.
INSERT INTO leasehold_migration (number, name, checksum, applied_at) VALUES (999, '0999_future', 0, 0)
