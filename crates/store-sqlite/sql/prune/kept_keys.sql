-- Deletes kept keys whose window has passed, longest passed first.
DELETE FROM kept_key
WHERE (workspace_id, key) IN (
    SELECT workspace_id, key FROM kept_key INDEXED BY kept_key_until WHERE dedupe_until <= ?1 ORDER BY dedupe_until LIMIT ?2)
