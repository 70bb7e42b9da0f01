-- Records the applied release of a function.
INSERT INTO {schema}.leasehold_function AS f (name, release, checksum) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET release = excluded.release, checksum = excluded.checksum, applied_at = clock_timestamp()
