-- Records that a migration was applied.
INSERT INTO leasehold_migration (number, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)
