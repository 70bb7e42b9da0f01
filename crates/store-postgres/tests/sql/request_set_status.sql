-- Only the status, as somebody in a hurry would.
UPDATE workflow_execution_queue SET status = $2 WHERE id = $1
