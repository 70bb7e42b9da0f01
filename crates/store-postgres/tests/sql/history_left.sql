-- Returns every request with its status.
SELECT id, status FROM leasehold.workflow_execution_queue
