-- Reads a request of any workspace.
SELECT {request/columns}
FROM workflow_execution_queue WHERE id = ?1
