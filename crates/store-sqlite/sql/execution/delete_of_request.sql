-- Deletes what is left of an execution that its request does not know any more.
DELETE FROM workflow_execution WHERE request_id = ?1
