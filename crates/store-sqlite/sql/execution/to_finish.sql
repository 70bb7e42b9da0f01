-- Reads what finishing an execution needs of it and of its request.
SELECT e.status AS execution_status, q.id, q.workspace_id, q.status,
    q.cancel_requested_at IS NOT NULL AS cancel_requested, q.crashes, q.crashes_alone
FROM workflow_execution e JOIN workflow_execution_queue q ON q.id = e.request_id
WHERE e.id = ?1
