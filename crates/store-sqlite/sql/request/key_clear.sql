-- Clears an idempotency key whose window has passed.
UPDATE workflow_execution_queue SET idempotency_key = NULL, dedupe_until = NULL WHERE id = ?1
