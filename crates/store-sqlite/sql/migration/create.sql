-- Creates the table of applied migrations.
CREATE TABLE IF NOT EXISTS leasehold_migration (
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    applied_at INTEGER NOT NULL,
    CONSTRAINT leasehold_migration_pkey PRIMARY KEY (number)
) STRICT
