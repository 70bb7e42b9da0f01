-- A migration of a newer program.
INSERT INTO leasehold_migration (number, name, checksum, applied_at) VALUES (999, 'future', 0, 0)
