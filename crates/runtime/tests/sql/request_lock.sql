-- Locks a request until the transaction ends.
SELECT 1 FROM workflow_execution_queue WHERE id = $1 FOR UPDATE
