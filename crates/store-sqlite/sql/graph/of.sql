-- Where an execution's graph is, and of which version it is.
SELECT g.state, g.ended, e.version_id
FROM execution_graph g JOIN workflow_execution e ON e.id = g.execution_id
WHERE g.execution_id = ?1
