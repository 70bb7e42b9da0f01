-- Adds a constraint that rejects requests of one priority beyond CLAIMED.
ALTER TABLE workflow_execution_queue
    ADD CONSTRAINT poison CHECK (priority <> 13 OR status IN ('PENDING', 'CLAIMED'))
