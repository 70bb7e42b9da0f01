-- Takes the refusal back.
ALTER TABLE workflow_execution_queue DROP CONSTRAINT poison
