-- Returns the transactions between the snapshots $1 and $2 with an event whose request has an earlier event that snapshot $2 does not see.
-- Reads no partition of the log of which snapshot $1 sees every event.
WITH unseen AS MATERIALIZED (
    SELECT coalesce(max(p.number), 0) << 40 AS first FROM {schema}.event_partition p
    WHERE p.sealed <= pg_snapshot_xmin($1::text::pg_snapshot)
)
SELECT DISTINCT e.xid::text::bigint AS xid
FROM (
    SELECT * FROM {schema}.request_event
    WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) AND xid < pg_snapshot_xmax($2::text::pg_snapshot)
        AND id >= (SELECT first FROM unseen)
    UNION ALL
    SELECT * FROM {schema}.request_event
    WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) AND id >= (SELECT first FROM unseen)
) e
WHERE e.from_status IS NOT NULL AND pg_visible_in_snapshot(e.xid, $2::text::pg_snapshot) AND EXISTS (
    SELECT FROM {schema}.request_event earlier WHERE earlier.request_id = e.request_id AND earlier.id < e.id
        AND earlier.id >= (SELECT first FROM unseen) AND NOT pg_visible_in_snapshot(earlier.xid, $2::text::pg_snapshot))
