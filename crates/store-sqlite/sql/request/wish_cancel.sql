-- Keeps the first wish to cancel a request; one that waits with an execution need not wait for its time any more. One to end it without being asked (?3) is told to the engine anew.
UPDATE workflow_execution_queue
SET due = CASE WHEN status = 'PENDING' THEN 1 END,
    run_at = CASE WHEN status = 'PENDING' THEN min(run_at, ?2) ELSE run_at END,
    cancel_requested_at = coalesce(cancel_requested_at, ?2), cancel_force = cancel_force OR ?3,
    cancel_told_at = CASE WHEN NOT ?3 THEN cancel_told_at END
WHERE id = ?1
