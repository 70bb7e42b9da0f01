-- Finds the pruned request that holds an idempotency key in a workspace at ?3, and what to compare.
SELECT request_id, definition_id, params_hash FROM kept_key WHERE workspace_id = ?1 AND key = ?2 AND dedupe_until > ?3
