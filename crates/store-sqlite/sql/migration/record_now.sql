-- Records that a migration was applied just now; in words that old sqlite3 programs know.
INSERT INTO leasehold_migration (number, name, checksum, applied_at)
VALUES (?1, ?2, ?3, CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER))
