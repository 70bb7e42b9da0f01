-- Completes a request without ending its execution.
UPDATE leasehold.workflow_execution_queue SET status = 'COMPLETED', finished_at = now() WHERE id = $1
