-- Lists up to ?2 requests of a workspace that are CLAIMED or DISPATCHED without a RUNNING execution.
SELECT q.id, q.status, q.execution_id, (SELECT e.status FROM workflow_execution e WHERE e.id = q.execution_id) AS execution_status
FROM workflow_execution_queue q INDEXED BY request_list_of_workspace_status
WHERE q.workspace_id = ?1 AND q.status IN ('CLAIMED', 'DISPATCHED') AND NOT EXISTS (
    SELECT 1 FROM workflow_execution e WHERE e.id = q.execution_id AND e.status = 'RUNNING')
LIMIT ?2
