-- Puts a request whose kept execution is gone into the line, like one that never had any.
UPDATE workflow_execution_queue SET execution_id = NULL, execution_lost = 1 WHERE id = ?1
