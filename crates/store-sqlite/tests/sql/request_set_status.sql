-- Sets the status of a request and all columns that depend on it.
UPDATE workflow_execution_queue
SET status = ?2,
    due = CASE ?2 WHEN 'PENDING' THEN 1 END,
    execution_id = coalesce(execution_id, id),
    claimed_by = CASE ?2 WHEN 'CLAIMED' THEN 'dispatcher' END,
    lease_expires_at = CASE ?2 WHEN 'CLAIMED' THEN 1 END,
    claimed_at = CASE WHEN ?2 <> 'PENDING' THEN 1 END,
    dispatched_at = CASE WHEN ?2 IN ('DISPATCHED', 'COMPLETED') THEN 1 END,
    finished_at = CASE WHEN ?2 IN ('COMPLETED', 'FAILED') THEN 1 END,
    failure_reason = CASE ?2 WHEN 'FAILED' THEN ?3 END
WHERE id = ?1
