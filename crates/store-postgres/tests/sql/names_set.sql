-- Gives a failed request, its execution and its last event names that only a newer program knows.
WITH request AS (
    UPDATE leasehold.workflow_execution_queue SET status = 'EXPIRED', failure_reason = 'too_old' WHERE id = $1
), event AS (
    UPDATE leasehold.request_event SET to_status = 'EXPIRED' WHERE request_id = $1 AND to_status = 'FAILED'
)
UPDATE leasehold.workflow_execution SET status = 'PARKED' WHERE request_id = $1
