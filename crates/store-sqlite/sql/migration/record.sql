-- Records an applied migration.
INSERT INTO leasehold_migration (number, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)
