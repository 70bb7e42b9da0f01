-- Returns the params of execution $1.
SELECT q.params::json AS params
FROM {schema}.workflow_execution e JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = $1
