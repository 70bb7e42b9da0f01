-- Clears idempotency keys whose window has passed, longest passed first.
UPDATE workflow_execution_queue SET idempotency_key = NULL, dedupe_until = NULL
WHERE id IN (
    SELECT id FROM workflow_execution_queue INDEXED BY request_dedupe_until
    WHERE idempotency_key IS NOT NULL AND dedupe_until <= ?1 ORDER BY dedupe_until LIMIT ?2)
