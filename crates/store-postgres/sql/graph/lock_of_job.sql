-- Locks the graph that has the job $1 as a node. The transaction waits for each lock at most $2 from now on, because it also locks pages of
-- leases, which contain jobs of other executions.
SELECT g.execution_id, g.state, g.ended, e.workspace_id, e.version_id, q.priority, q.trace_context, q.crashes IS NOT NULL AS crashed, j.node
FROM {schema}.job j
JOIN {schema}.execution_graph g ON g.execution_id = j.execution_id
JOIN {schema}.workflow_execution e ON e.id = g.execution_id
JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
CROSS JOIN (SELECT set_config('lock_timeout', $2, true)) AS limits
WHERE j.id = $1 AND j.node IS NOT NULL
FOR UPDATE OF g
