-- Returns the first transaction with an event from the end of snapshot $1 on, and the transaction of the event $3 events later; none if there is no such event before the end of snapshot $2.
WITH unseen AS MATERIALIZED (
    SELECT coalesce(max(p.number), 0) << 40 AS first FROM {schema}.event_partition p
    WHERE p.sealed <= pg_snapshot_xmin($1::text::pg_snapshot)
)
SELECT
    (SELECT xid FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot)
        AND xid < pg_snapshot_xmax($2::text::pg_snapshot) AND id >= (SELECT first FROM unseen)
        ORDER BY xid, id LIMIT 1)::text::bigint AS first,
    (SELECT xid FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot)
        AND xid < pg_snapshot_xmax($2::text::pg_snapshot) AND id >= (SELECT first FROM unseen)
        ORDER BY xid, id LIMIT 1 OFFSET $3)::text::bigint AS beyond
