-- Enqueues a request in the caller's transaction.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, params => $3) AS id
