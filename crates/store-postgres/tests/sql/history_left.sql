-- Returns every request with its status.
SELECT id, status FROM workflow_execution_queue
