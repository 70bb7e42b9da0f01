-- Returns those of the executions $1 that are RUNNING.
SELECT {execution/columns}
FROM {schema}.workflow_execution WHERE id = ANY ($1) AND finished_at IS NULL
