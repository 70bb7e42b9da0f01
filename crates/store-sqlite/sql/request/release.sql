-- CLAIMED → PENDING; the request keeps its execution if ?5 is true.
UPDATE workflow_execution_queue
SET status = 'PENDING', due = ?2 <= ?6, run_at = ?2, claimed_by = NULL, lease_expires_at = NULL, claimed_at = NULL,
    execution_id = CASE WHEN ?5 THEN execution_id END, attempt_count = attempt_count + 1,
    dispatch_failures = ?3, last_error = coalesce(?4, last_error)
WHERE id = ?1
