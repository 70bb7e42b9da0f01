-- Returns those of the executions $1 that are RUNNING.
SELECT {execution/columns}
FROM workflow_execution WHERE id = ANY ($1) AND finished_at IS NULL
