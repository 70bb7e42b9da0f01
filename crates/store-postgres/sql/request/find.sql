-- Returns a request of any workspace.
SELECT {request/columns}
FROM {schema}.workflow_execution_queue WHERE id = $1
