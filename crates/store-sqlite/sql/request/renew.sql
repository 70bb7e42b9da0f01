-- Extends the lease of a claim that its owner still holds.
UPDATE workflow_execution_queue SET lease_expires_at = ?4
WHERE id = ?1 AND status = 'CLAIMED' AND claimed_by = ?2 AND claim_token = ?3
