-- Reads a request of a workspace.
SELECT {request/columns}
FROM workflow_execution_queue WHERE id = ?2 AND workspace_id = ?1
