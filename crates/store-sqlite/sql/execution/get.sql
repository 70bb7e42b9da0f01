-- Reads an execution of a workspace.
SELECT {execution/columns}
FROM workflow_execution WHERE id = ?2 AND workspace_id = ?1
