-- Deletes an execution that was not started, and frees its slot.
DELETE FROM workflow_execution WHERE id = ?1
