-- Keeps the first wish to cancel a request.
UPDATE workflow_execution_queue SET cancel_requested_at = coalesce(cancel_requested_at, ?2) WHERE id = ?1
