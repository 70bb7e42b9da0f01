-- Changes the reason of a failed request, which no operation does.
UPDATE workflow_execution_queue SET failure_reason = ?2 WHERE id = ?1
