-- Ends an execution without updating its request.
UPDATE leasehold.workflow_execution SET status = 'COMPLETED', finished_at = now() WHERE id = $1
