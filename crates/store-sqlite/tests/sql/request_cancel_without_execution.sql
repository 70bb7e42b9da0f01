-- Removes the execution from the first request that is to be cancelled.
UPDATE workflow_execution_queue SET execution_id = NULL
WHERE id = (SELECT id FROM workflow_execution_queue WHERE cancel_requested_at IS NOT NULL ORDER BY cancel_requested_at, id LIMIT 1)
