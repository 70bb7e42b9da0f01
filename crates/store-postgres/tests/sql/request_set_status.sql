-- Updates only the status.
UPDATE workflow_execution_queue SET status = $2 WHERE id = $1
