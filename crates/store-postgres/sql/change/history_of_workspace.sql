-- Returns the events of workspace $5 visible in snapshot $1, request by request, after event $3 of request $2.
SELECT e.id, e.request_id, e.workspace_id, e.from_status, e.to_status, e.at, e.by_whom, e.reason
FROM workflow_execution_queue q JOIN request_event e ON e.request_id = q.id
WHERE q.workspace_id = $5 AND q.id >= $2 AND (e.request_id, e.id) > ($2, $3)
    AND pg_visible_in_snapshot(e.xid, $1::text::pg_snapshot)
ORDER BY q.id, e.id LIMIT $4
