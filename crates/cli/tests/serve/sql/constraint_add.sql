-- Refuses requests of one priority, as a constraint that somebody added by hand does.
ALTER TABLE workflow_execution_queue ADD CONSTRAINT by_hand CHECK (priority <> 13) NOT VALID
