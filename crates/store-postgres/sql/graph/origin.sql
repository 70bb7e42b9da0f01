-- What the graph of an execution is made of, and whether it was started.
SELECT e.workspace_id, e.version_id, e.finished_at IS NULL AS running, q.priority, q.trace_context, q.params::json AS params,
    g.execution_id IS NOT NULL AS started, g.ended IS NOT NULL AS ended
FROM workflow_execution e
JOIN workflow_execution_queue q ON q.id = e.request_id
LEFT JOIN execution_graph g ON g.execution_id = e.id
WHERE e.id = $1
