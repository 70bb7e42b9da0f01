-- Returns a request of a workspace.
SELECT {request/columns}
FROM {schema}.workflow_execution_queue WHERE id = $2 AND workspace_id = $1
