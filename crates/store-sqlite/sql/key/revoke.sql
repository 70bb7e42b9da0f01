-- Revokes a key.
UPDATE api_key SET revoked_at = ?1 WHERE id = ?2
RETURNING {key/columns}
