-- Deletes an execution that was not started; a trigger frees its slot.
DELETE FROM workflow_execution WHERE id = ?1
