-- Reads an execution's params.
SELECT q.params FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id WHERE e.id = ?1
