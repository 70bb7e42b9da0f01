-- Returns a request whose kept execution is missing to the line.
UPDATE workflow_execution_queue SET execution_id = NULL, execution_lost = 1 WHERE id = ?1
