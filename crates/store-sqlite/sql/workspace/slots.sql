-- The limit in force, and the RUNNING executions counted: they are the slots in use.
SELECT concurrency_limit,
    (SELECT count(*) FROM workflow_execution e WHERE e.workspace_id = t.workspace_id AND e.status = 'RUNNING') AS in_use
FROM workspace_turn t WHERE workspace_id = ?1
