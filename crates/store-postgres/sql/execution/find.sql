-- Returns an execution of any workspace.
SELECT {execution/columns}
FROM {schema}.workflow_execution WHERE id = $1
