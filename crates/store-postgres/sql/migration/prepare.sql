-- Creates the table of applied migrations.
CREATE TABLE IF NOT EXISTS leasehold_migration (
    number integer CONSTRAINT leasehold_migration_pkey PRIMARY KEY,
    name text NOT NULL,
    checksum bigint NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
