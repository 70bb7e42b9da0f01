-- PENDING → FAILED: cancelled before admission, or its workspace, definition or version is missing.
UPDATE workflow_execution_queue
SET status = 'FAILED', due = NULL, execution_id = NULL, execution_lost = 0, failure_reason = ?2, finished_at = ?3,
    live_redrive_of = NULL, attempt_count = attempt_count + ?4
WHERE id = ?1
