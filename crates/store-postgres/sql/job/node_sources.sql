-- Returns what the payloads of the jobs $1 are built from, by execution; for jobs that run no node a row without an execution.
SELECT g.execution_id, g.ids, g.nodes, e.workspace_id, e.version_id, q.params::json AS params, q.crashes IS NOT NULL AS crashed
FROM (
    SELECT j.execution_id, array_agg(j.id) AS ids, array_agg(j.node) AS nodes
    FROM {schema}.job j WHERE j.id = ANY ($1::bigint[]) GROUP BY j.execution_id
) g
LEFT JOIN {schema}.workflow_execution e ON e.id = g.execution_id
LEFT JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
