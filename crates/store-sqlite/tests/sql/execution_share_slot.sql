-- Gives all RUNNING executions of a workspace the same slot number, so that more would fit.
UPDATE workflow_execution SET slot = 0 WHERE status = 'RUNNING' AND workspace_id = ?1
