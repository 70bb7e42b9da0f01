-- Lists up to ?2 RUNNING executions of a workspace whose request has finished, is missing or has another execution.
SELECT e.id, e.request_id, q.status, q.execution_id IS NOT e.id AS has_another
FROM workflow_execution e INDEXED BY execution_running LEFT JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE e.workspace_id = ?1 AND e.status = 'RUNNING'
    AND NOT coalesce(q.execution_id IS e.id AND q.status IN ('PENDING', 'CLAIMED', 'DISPATCHED'), 0)
ORDER BY e.admission LIMIT ?2
