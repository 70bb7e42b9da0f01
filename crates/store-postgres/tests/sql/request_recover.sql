-- Recovers a claim whose lease expired.
UPDATE leasehold.workflow_execution_queue
SET status = 'PENDING', due = true, claimed_at = NULL, claimed_by = NULL, lease_expires_at = NULL WHERE id = $1
