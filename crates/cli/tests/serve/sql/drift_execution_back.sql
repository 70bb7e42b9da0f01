-- Puts an execution that has ended back to where it was before.
UPDATE workflow_execution SET status = 'RUNNING', finished_at = NULL WHERE id = $1
