-- Reads an execution of any workspace.
SELECT {execution/columns}
FROM workflow_execution WHERE id = ?1
