-- Locks the graphs of the executions $1, ordered by id. The transaction waits for each lock at most $2 from now on, because it also locks pages
-- of leases, which contain jobs of other executions.
SELECT g.execution_id, g.state, g.ended, g.deadline, e.workspace_id, e.version_id, q.priority, q.trace_context, q.crashes IS NOT NULL AS crashed
FROM {schema}.execution_graph g
JOIN {schema}.workflow_execution e ON e.id = g.execution_id
JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
CROSS JOIN (SELECT set_config('lock_timeout', $2, true)) AS limits
WHERE g.execution_id = ANY ($1)
ORDER BY g.execution_id FOR UPDATE OF g
