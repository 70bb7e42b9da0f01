-- Records migration $1 of the next program, which needs programs that were built with migration $2. Returns when, in microseconds since 1970.
INSERT INTO leasehold_migration (number, name, checksum, compatible_from, applied_by)
VALUES ($1, 'next_' || $1::integer, 1, $2, '9.9.9')
RETURNING (extract(epoch FROM applied_at) * 1000000)::bigint AS applied_us
