-- Enqueues a request in the caller's transaction with options.
SELECT leasehold.leasehold_enqueue(workspace_id => $1, definition_id => $2, options => $3)::text AS id
