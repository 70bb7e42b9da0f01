-- Returns an execution of a workspace.
SELECT {execution/columns}
FROM {schema}.workflow_execution WHERE id = $2 AND workspace_id = $1
