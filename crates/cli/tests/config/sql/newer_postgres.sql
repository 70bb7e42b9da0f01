-- Records a migration of a newer program that needs a program with migration {needs}.
INSERT INTO leasehold_migration (number, name, checksum, compatible_from, applied_by)
VALUES (999, '0999_future', 1, {needs}, '9.9.9')
ON CONFLICT (number) DO UPDATE SET compatible_from = excluded.compatible_from
