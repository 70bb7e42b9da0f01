-- Records the successor of a key, which then expires after the overlap or at its own time, whichever is earlier.
UPDATE {schema}.api_key
SET successor_id = $3,
    expires_at = least(expires_at, coalesce($1::timestamptz, statement_timestamp()) + $4::bigint::double precision * interval '1 microsecond')
WHERE id = $2
RETURNING {key/columns}
