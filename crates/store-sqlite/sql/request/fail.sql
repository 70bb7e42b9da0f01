-- CLAIMED → FAILED for a start that definitely did not happen.
UPDATE workflow_execution_queue
SET status = 'FAILED', claimed_by = NULL, lease_expires_at = NULL, execution_id = NULL, attempt_count = attempt_count + 1,
    dispatch_failures = ?3, last_error = coalesce(?4, last_error), failure_reason = ?2, finished_at = ?5,
    live_redrive_of = NULL
WHERE id = ?1
