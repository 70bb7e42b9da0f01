-- Reads the limit and counts the RUNNING executions: each uses one slot.
SELECT concurrency_limit,
    (SELECT count(*) FROM workflow_execution e WHERE e.workspace_id = t.workspace_id AND e.status = 'RUNNING') AS in_use
FROM workspace_turn t WHERE workspace_id = ?1
