-- Drops the constraint that rejects other statuses of executions, as a newer program may.
ALTER TABLE leasehold.workflow_execution DROP CONSTRAINT execution_status
