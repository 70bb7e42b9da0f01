-- Returns the events visible in snapshot $2 but not in $1, after event id $3, in the order they were written; of workspace $5, or of all.
SELECT id, request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM (
    SELECT * FROM {schema}.request_event
    WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) AND xid < pg_snapshot_xmax($2::text::pg_snapshot)
    UNION ALL
    SELECT * FROM {schema}.request_event WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
) e
WHERE pg_visible_in_snapshot(xid, $2::text::pg_snapshot) AND id > $3 AND ($5::uuid IS NULL OR workspace_id = $5)
ORDER BY id LIMIT $4
