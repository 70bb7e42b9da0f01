-- Reads the node that a job runs, with workspace and version of its execution, and whether its request has crashes; no row if it runs none.
SELECT j.execution_id, j.node, e.workspace_id, e.version_id, q.crashes IS NOT NULL AS crashed
FROM job j JOIN workflow_execution e ON e.id = j.execution_id JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE j.id = ?1 AND j.node IS NOT NULL
