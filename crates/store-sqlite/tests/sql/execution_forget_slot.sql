-- Clears the slot numbers of the RUNNING executions of a workspace, so that more would fit.
UPDATE workflow_execution SET slot = NULL WHERE status = 'RUNNING' AND workspace_id = ?1
