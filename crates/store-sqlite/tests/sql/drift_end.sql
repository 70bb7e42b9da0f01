-- Ends an execution without its request.
UPDATE workflow_execution SET status = 'COMPLETED', finished_at = 1 WHERE id = ?1
