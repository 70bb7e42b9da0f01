-- Records the successor of a key, which then expires after the overlap or at its own time, whichever is earlier.
UPDATE api_key SET successor_id = ?3, expires_at = min(coalesce(expires_at, ?4), ?4) WHERE id = ?2
RETURNING {key/columns}
