-- Records a cancel request and keeps the time of the first. A PENDING request with an execution becomes due at once. Clears the engine's acknowledgement, so that a repeated one is sent again: a workflow that continued as new may have lost the first. ?3: terminate.
UPDATE workflow_execution_queue
SET due = CASE WHEN status = 'PENDING' THEN 1 END,
    run_at = CASE WHEN status = 'PENDING' THEN min(run_at, ?2) ELSE run_at END,
    cancel_requested_at = coalesce(cancel_requested_at, ?2), cancel_force = cancel_force OR ?3,
    cancel_told_at = NULL
WHERE id = ?1
