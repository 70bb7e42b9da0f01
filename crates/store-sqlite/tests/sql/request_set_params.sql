-- Changes the params of a request, which no operation does.
UPDATE workflow_execution_queue SET params = ?2 WHERE id = ?1
