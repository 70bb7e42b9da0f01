-- Keeps the first wish to cancel a request. One to end it without being asked (?3) is told to the engine anew.
UPDATE workflow_execution_queue
SET cancel_requested_at = coalesce(cancel_requested_at, ?2), cancel_force = cancel_force OR ?3,
    cancel_told_at = CASE WHEN NOT ?3 THEN cancel_told_at END
WHERE id = ?1
