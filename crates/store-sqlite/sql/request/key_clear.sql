-- Takes an idempotency key whose window has passed from its holder.
UPDATE workflow_execution_queue SET idempotency_key = NULL, dedupe_until = NULL WHERE id = ?1
