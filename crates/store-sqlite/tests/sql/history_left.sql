-- Lists all requests with their status.
SELECT id, status FROM workflow_execution_queue
