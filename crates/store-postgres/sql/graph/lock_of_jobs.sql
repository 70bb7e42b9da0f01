-- Holds the graphs of which the jobs $1 are nodes until the transaction ends, in the order of their ids.
WITH asked AS MATERIALIZED (
    SELECT j.execution_id, array_agg(j.id) AS jobs, array_agg(j.node) AS nodes
    FROM job j WHERE j.id = ANY ($1) AND j.node IS NOT NULL GROUP BY j.execution_id
)
SELECT g.execution_id, g.state, g.ended, e.workspace_id, e.version_id, q.priority, q.trace_context, a.jobs, a.nodes
FROM asked a
JOIN execution_graph g ON g.execution_id = a.execution_id
JOIN workflow_execution e ON e.id = g.execution_id
JOIN workflow_execution_queue q ON q.id = e.request_id
ORDER BY g.execution_id FOR UPDATE OF g
