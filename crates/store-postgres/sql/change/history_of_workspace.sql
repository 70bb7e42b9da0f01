-- Returns the events of workspace $7 visible in snapshot $1, request by request, after event $3 of request $2. Scans at most $5 events.
-- Events before id $6 have transaction numbers of another cluster and are visible.
SELECT id, request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM (
    SELECT e.* FROM {schema}.workflow_execution_queue q JOIN {schema}.request_event e ON e.request_id = q.id
    WHERE q.workspace_id = $7 AND q.id >= $2 AND (e.request_id, e.id) > ($2, $3)
    ORDER BY q.id, e.id LIMIT $5
) e
WHERE id < $6 OR pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
ORDER BY request_id, id LIMIT $4
