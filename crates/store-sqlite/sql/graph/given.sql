-- What the nodes of an execution are made of, but for outputs.
SELECT q.workspace_id, q.params, q.priority, q.trace_context
FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = ?1
