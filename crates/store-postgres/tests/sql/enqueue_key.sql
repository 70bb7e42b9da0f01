-- Enqueues a request in the caller's transaction with an idempotency key.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => $3, idempotency_key => $4) AS id
