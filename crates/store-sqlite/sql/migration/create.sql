-- Creates the table of applied migrations. Older programs read it: its columns stay as they are.
CREATE TABLE IF NOT EXISTS leasehold_migration (
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    compatible_from INTEGER NOT NULL,
    applied_by TEXT NOT NULL,
    applied_at INTEGER NOT NULL,
    CONSTRAINT leasehold_migration_pkey PRIMARY KEY (number),
    CONSTRAINT leasehold_migration_compatible_from CHECK (compatible_from > 0)
) STRICT
