-- Enqueues a request in the caller's transaction with an idempotency key that holds for a day.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => $3, idempotency_key => $4, dedupe_window => '1 day') AS id
