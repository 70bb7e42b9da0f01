-- Fails a PENDING request with a reason that only a claimed request can have.
UPDATE leasehold.workflow_execution_queue
SET status = 'FAILED', due = NULL, finished_at = now(), failure_reason = 'dispatch_exhausted' WHERE id = $1
