-- Reads the node that a job runs, with the workspace and the version of its execution; no row if it runs none.
SELECT j.execution_id, j.node, e.workspace_id, e.version_id
FROM job j JOIN workflow_execution e ON e.id = j.execution_id
WHERE j.id = ?1 AND j.node IS NOT NULL
