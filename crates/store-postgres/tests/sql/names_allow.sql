-- Drops the constraints that reject other names, as a newer program may.
ALTER TABLE leasehold.workflow_execution_queue
    DROP CONSTRAINT request_status,
    DROP CONSTRAINT request_finished,
    DROP CONSTRAINT request_dispatched_at,
    DROP CONSTRAINT request_failure_reason
