-- Returns the last event that a scan of $3 events of workspace $4 after event $2 of request $1 reads; none if the scan reaches the end.
SELECT e.request_id, e.id FROM {schema}.workflow_execution_queue q JOIN {schema}.request_event e ON e.request_id = q.id
WHERE q.workspace_id = $4 AND q.id >= $1 AND (e.request_id, e.id) > ($1, $2)
ORDER BY q.id, e.id LIMIT 1 OFFSET $3::bigint - 1
