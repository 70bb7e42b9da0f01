-- Updates only the status.
UPDATE leasehold.workflow_execution_queue SET status = $2 WHERE id = $1
