-- Puts a request that has failed back to where it was before.
UPDATE workflow_execution_queue SET status = 'DISPATCHED', finished_at = NULL, failure_reason = NULL WHERE id = $1
