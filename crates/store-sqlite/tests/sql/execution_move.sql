-- Moves the RUNNING executions of workspace ?1 to workspace ?2.
UPDATE workflow_execution SET workspace_id = ?2 WHERE status = 'RUNNING' AND workspace_id = ?1
