-- Resets a failed request to DISPATCHED.
UPDATE workflow_execution_queue SET status = 'DISPATCHED', finished_at = NULL, failure_reason = NULL WHERE id = $1
