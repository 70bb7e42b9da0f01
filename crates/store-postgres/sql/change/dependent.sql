-- Returns the transactions between the snapshots $1 and $2 with an event whose request has an earlier event that snapshot $2 does not see.
SELECT DISTINCT e.xid::text::bigint AS xid
FROM (
    SELECT * FROM {schema}.request_event
    WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) AND xid < pg_snapshot_xmax($2::text::pg_snapshot)
    UNION ALL
    SELECT * FROM {schema}.request_event WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)))
) e
WHERE e.from_status IS NOT NULL AND pg_visible_in_snapshot(e.xid, $2::text::pg_snapshot) AND EXISTS (
    SELECT FROM {schema}.request_event earlier WHERE earlier.request_id = e.request_id AND earlier.id < e.id
        AND NOT pg_visible_in_snapshot(earlier.xid, $2::text::pg_snapshot))
