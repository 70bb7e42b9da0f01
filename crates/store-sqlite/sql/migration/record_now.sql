-- Records a migration as applied now, with functions that old versions of sqlite3 have.
INSERT INTO leasehold_migration (number, name, checksum, compatible_from, applied_by, applied_at)
VALUES (?1, ?2, ?3, ?4, ?5, CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER))
