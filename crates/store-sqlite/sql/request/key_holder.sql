-- Finds the request that holds an idempotency key in a workspace, and what to compare.
SELECT id, definition_id, params, dedupe_until
FROM workflow_execution_queue INDEXED BY request_idempotency_key
WHERE workspace_id = ?1 AND idempotency_key = ?2
