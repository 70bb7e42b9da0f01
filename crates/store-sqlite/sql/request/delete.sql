-- Deletes a request; its execution goes with it.
DELETE FROM workflow_execution_queue WHERE id = ?1
