-- Revokes a key.
UPDATE {schema}.api_key SET revoked_at = coalesce($1::timestamptz, statement_timestamp()) WHERE id = $2
RETURNING {key/columns}
