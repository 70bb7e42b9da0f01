-- Has the database refuse to take requests of one priority further than CLAIMED.
ALTER TABLE workflow_execution_queue
    ADD CONSTRAINT poison CHECK (priority <> 13 OR status IN ('PENDING', 'CLAIMED'))
