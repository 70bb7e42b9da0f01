-- Records a migration of a later version that needs a program with migration $1.
INSERT INTO leasehold.leasehold_migration (number, name, checksum, compatible_from, applied_by)
VALUES (999, '0999_future', 1, $1, '9.9.9')
ON CONFLICT (number) DO UPDATE SET compatible_from = excluded.compatible_from
