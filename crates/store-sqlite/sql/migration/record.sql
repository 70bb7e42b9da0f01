-- Records an applied migration.
INSERT INTO leasehold_migration (number, name, checksum, compatible_from, applied_by, applied_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
