-- Deletes a request and, by cascade, its execution.
DELETE FROM workflow_execution_queue WHERE id = ?1
