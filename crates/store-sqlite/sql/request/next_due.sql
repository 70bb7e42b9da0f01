-- When the next request that waits for its time becomes due.
SELECT run_at FROM workflow_execution_queue INDEXED BY request_not_due WHERE due = 0 ORDER BY run_at LIMIT 1
