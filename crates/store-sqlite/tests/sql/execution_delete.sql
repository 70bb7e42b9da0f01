-- Deletes an execution.
DELETE FROM workflow_execution WHERE id = ?1
