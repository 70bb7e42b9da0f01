-- Records an applied migration.
INSERT INTO leasehold_migration (number, name, checksum) VALUES ($1, $2, $3)
