-- A claim that ran out, as recovery leaves it.
UPDATE workflow_execution_queue
SET status = 'PENDING', due = true, claimed_at = NULL, claimed_by = NULL, lease_expires_at = NULL WHERE id = $1
