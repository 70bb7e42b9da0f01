-- Resets a finished execution to RUNNING.
UPDATE workflow_execution SET status = 'RUNNING', finished_at = NULL WHERE id = $1
