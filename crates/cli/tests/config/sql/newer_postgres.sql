-- A migration of a newer program.
INSERT INTO leasehold_migration (number, name, checksum) VALUES (999, '0999_future', 1)
