-- Returns the current snapshot, the stream it belongs to, and what a snapshot must see at least so that no event after it has expired: the
-- transactions before `kept_from`. Transaction numbers are valid only within one cluster.
SELECT pg_current_snapshot()::text AS snapshot, {schema}.leasehold_cluster() AS cluster, oid AS database,
    (SELECT p.sealed::text::bigint FROM {schema}.event_partition p ORDER BY p.number LIMIT 1) AS kept_from
FROM pg_database WHERE datname = current_database()
