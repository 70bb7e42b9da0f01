-- With what the executions $1 run.
SELECT e.id, q.params::json AS params
FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = ANY ($1)
