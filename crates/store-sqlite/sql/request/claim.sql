-- PENDING → CLAIMED with owner, lease, the next fencing token and the execution.
UPDATE workflow_execution_queue
SET status = 'CLAIMED', due = NULL, execution_id = ?2, execution_lost = 0, claimed_by = ?3, claim_token = claim_token + 1,
    lease_expires_at = ?4, claimed_at = ?5
WHERE id = ?1
