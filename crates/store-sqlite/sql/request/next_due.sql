-- Reads when the next scheduled request becomes due.
SELECT run_at FROM workflow_execution_queue INDEXED BY request_not_due WHERE due = 0 ORDER BY run_at LIMIT 1
