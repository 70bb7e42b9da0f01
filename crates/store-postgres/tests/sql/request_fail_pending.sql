-- Fails a waiting request for a reason that only a claimed one can have.
UPDATE workflow_execution_queue
SET status = 'FAILED', due = NULL, finished_at = now(), failure_reason = 'dispatch_exhausted' WHERE id = $1
