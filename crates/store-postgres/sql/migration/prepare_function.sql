-- Creates the table of applied functions and their releases.
CREATE TABLE IF NOT EXISTS {schema}.leasehold_function (
    name text CONSTRAINT leasehold_function_pkey PRIMARY KEY,
    release integer NOT NULL CONSTRAINT leasehold_function_release CHECK (release > 0),
    checksum bigint NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
