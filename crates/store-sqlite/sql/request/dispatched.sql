-- CLAIMED → DISPATCHED.
UPDATE workflow_execution_queue
SET status = 'DISPATCHED', claimed_by = NULL, lease_expires_at = NULL, dispatched_at = ?2,
    crashes = NULL, crashes_alone = NULL, crashed_process = NULL
WHERE id = ?1
