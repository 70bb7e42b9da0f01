-- Keeps the key of the request ?1 until its window ends; ?2 is the hash of its params.
INSERT INTO kept_key (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
SELECT workspace_id, id, definition_id, dedupe_until, idempotency_key, ?2 FROM workflow_execution_queue WHERE id = ?1
ON CONFLICT (workspace_id, key) DO UPDATE
SET request_id = excluded.request_id, definition_id = excluded.definition_id, dedupe_until = excluded.dedupe_until,
    params_hash = excluded.params_hash
