-- Completes a request without its execution.
UPDATE workflow_execution_queue SET status = 'COMPLETED', finished_at = 1 WHERE id = ?1
