-- Records an applied migration.
INSERT INTO {schema}.leasehold_migration (number, name, checksum, compatible_from, applied_by)
VALUES ($1, $2, $3, $4, $5)
