-- Adds a constraint that rejects one priority.
ALTER TABLE workflow_execution_queue ADD CONSTRAINT by_hand CHECK (priority <> 13) NOT VALID
