-- Completes a request without finishing its execution.
UPDATE workflow_execution_queue SET status = 'COMPLETED', finished_at = created_at WHERE id = $1
