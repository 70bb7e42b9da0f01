-- Creates the table of applied migrations. Older programs read it: its columns stay as they are.
CREATE TABLE IF NOT EXISTS {schema}.leasehold_migration (
    number integer CONSTRAINT leasehold_migration_pkey PRIMARY KEY,
    name text NOT NULL,
    checksum bigint NOT NULL,
    compatible_from integer NOT NULL CONSTRAINT leasehold_migration_compatible_from CHECK (compatible_from > 0),
    applied_by text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
