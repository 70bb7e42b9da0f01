-- Takes an execution away.
DELETE FROM workflow_execution WHERE id = $1
