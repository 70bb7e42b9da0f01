-- Moves an execution to another workspace.
UPDATE leasehold.workflow_execution SET workspace_id = $2 WHERE id = $1
