-- DISPATCHED → COMPLETED or FAILED.
UPDATE workflow_execution_queue
SET status = ?2, failure_reason = ?3, last_error = coalesce(?4, last_error), finished_at = ?5,
    attempt_count = attempt_count + (?2 = 'FAILED'), live_redrive_of = NULL
WHERE id = ?1
