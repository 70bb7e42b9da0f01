-- Records a migration of a later version that needs a program with migration ?1.
INSERT INTO leasehold_migration (number, name, checksum, compatible_from, applied_by, applied_at)
VALUES (999, '0999_future', 0, ?1, '9.9.9', 0)
ON CONFLICT (number) DO UPDATE SET compatible_from = excluded.compatible_from
