-- Reads since when the first request in line has been due, over the workspaces with a free slot.
SELECT min(max(q.run_at, q.created_at)) AS since
FROM workspace_turn t CROSS JOIN workflow_execution_queue q ON q.id = (
    SELECT f.id FROM workflow_execution_queue f INDEXED BY request_line
    WHERE f.workspace_id = t.workspace_id AND f.due = 1 AND f.execution_id IS NULL
    ORDER BY f.priority DESC, f.created_at, f.id LIMIT 1)
WHERE t.ready = 1
