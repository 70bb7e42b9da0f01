-- Records that a key was used now.
UPDATE api_key SET last_used_at = max(coalesce(last_used_at, ?1), ?1) WHERE id = ?2
