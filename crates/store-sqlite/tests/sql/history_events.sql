-- Lists all events in commit order.
SELECT e.id, e.request_id, e.workspace_id, e.from_status, e.to_status, e.at, e.by_whom, e.reason, q.priority, q.created_at
FROM request_event e JOIN workflow_execution_queue q ON q.id = e.request_id ORDER BY e.id
