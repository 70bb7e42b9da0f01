-- Drops that constraint.
ALTER TABLE workflow_execution_queue DROP CONSTRAINT poison
