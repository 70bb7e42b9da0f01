-- Returns the running executions of some workspaces.
SELECT id FROM workflow_execution WHERE status = 'RUNNING' AND workspace_id = ANY ({victims})
