-- Every request and where it is.
SELECT id, status FROM workflow_execution_queue
