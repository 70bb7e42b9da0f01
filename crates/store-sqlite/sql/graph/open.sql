-- Reads the state of an execution's graph, its version, and the request's fields that its jobs inherit.
SELECT g.state, g.ended, e.version_id, q.workspace_id, q.priority, q.trace_context,
    q.crashes IS NOT NULL AS crashed
FROM execution_graph g
JOIN workflow_execution e ON e.id = g.execution_id
JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE g.execution_id = ?1
