-- Returns the events visible in snapshot $1, request by request, after event $3 of request $2, without those of pruned requests. Scans at most $5 events.
-- Events before id $6 have transaction numbers of another cluster and are visible.
SELECT id, request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM (
    SELECT * FROM {schema}.request_event WHERE (request_id, id) > ($2, $3) ORDER BY request_id, id LIMIT $5
) e
WHERE (id < $6 OR pg_visible_in_snapshot(xid, $1::text::pg_snapshot))
    AND EXISTS (SELECT FROM {schema}.workflow_execution_queue q WHERE q.id = e.request_id)
ORDER BY request_id, id LIMIT $4
