-- Lists those executions in the JSON array ?1 that are RUNNING.
SELECT {execution/columns}
FROM workflow_execution
WHERE id IN (SELECT unhex(value) FROM json_each(?1)) AND finished_at IS NULL
