-- Removes the execution from a CLAIMED request, which a constraint prevents.
UPDATE workflow_execution_queue SET execution_id = NULL WHERE id = ?1
