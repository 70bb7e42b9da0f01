-- Returns the executions of a workspace.
SELECT e.id FROM workflow_execution e WHERE e.workspace_id = '{workspace}'
