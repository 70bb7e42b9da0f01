-- Holds the requests of the executions $1, so that they stay as they are until the transaction ends.
SELECT q.id FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = ANY ($1) ORDER BY q.id FOR UPDATE OF q
