-- Deletes an old execution that its request no longer refers to.
DELETE FROM workflow_execution WHERE request_id = ?1
