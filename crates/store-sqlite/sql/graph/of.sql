-- Where an execution's graph is, of which version it is, and what its jobs take from the request.
SELECT g.state, g.ended, e.version_id, q.workspace_id, q.priority, q.trace_context
FROM execution_graph g
JOIN workflow_execution e ON e.id = g.execution_id
JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE g.execution_id = ?1
