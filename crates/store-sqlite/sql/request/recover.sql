-- CLAIMED → PENDING for an expired claim; the request keeps its execution.
UPDATE workflow_execution_queue
SET status = 'PENDING', due = 1, claimed_by = NULL, lease_expires_at = NULL, claimed_at = NULL,
    attempt_count = attempt_count + 1
WHERE id = ?1 RETURNING workspace_id, execution_id
