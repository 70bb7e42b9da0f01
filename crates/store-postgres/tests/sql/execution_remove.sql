-- Deletes an execution.
DELETE FROM leasehold.workflow_execution WHERE id = $1
