-- Returns the started nodes of the executions $1 that have not ended, with their jobs and queues.
SELECT n.execution_id, n.node, n.job_id, j.queue_id
FROM {schema}.execution_node n
CROSS JOIN LATERAL (SELECT j.queue_id FROM {schema}.job j WHERE j.id = n.job_id LIMIT 1) j
WHERE n.execution_id = ANY ($1) AND n.finished_at IS NULL
