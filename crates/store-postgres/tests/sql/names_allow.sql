-- Drops the trigger that rejects other names, as a newer program may.
DROP TRIGGER request_is_valid ON leasehold.workflow_execution_queue
