-- PENDING → CLAIMED as an intermediate step, for a request whose execution ended before it was claimed again.
UPDATE workflow_execution_queue
SET status = 'CLAIMED', due = NULL, execution_id = ?2, execution_lost = 0, claimed_by = ?3, lease_expires_at = ?4,
    claimed_at = ?4
WHERE id = ?1
