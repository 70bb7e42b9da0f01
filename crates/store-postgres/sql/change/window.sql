-- Returns the events visible in snapshot $2 but not in $1, after event id $3, in the order they were written; of workspace $5, or of all. Reads no
-- partition of the log of which snapshot $1 sees every event.
WITH unseen AS MATERIALIZED (
    SELECT coalesce(max(p.number), 0) << 40 AS first FROM {schema}.event_partition p
    WHERE p.sealed <= pg_snapshot_xmin($1::text::pg_snapshot)
)
SELECT id, request_id, workspace_id, from_status, to_status, at, by_whom, reason
FROM (
    SELECT * FROM {schema}.request_event
    WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) AND xid < pg_snapshot_xmax($2::text::pg_snapshot)
        AND id >= (SELECT first FROM unseen)
    UNION ALL
    SELECT * FROM {schema}.request_event
    WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))) AND id >= (SELECT first FROM unseen)
) e
WHERE pg_visible_in_snapshot(xid, $2::text::pg_snapshot) AND id > $3 AND ($5::uuid IS NULL OR workspace_id = $5)
ORDER BY id LIMIT $4
