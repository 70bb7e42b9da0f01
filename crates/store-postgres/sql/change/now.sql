-- Returns the current snapshot, and what a snapshot must see at least so that no event after it has expired: the transactions before `kept_from`.
SELECT pg_current_snapshot()::text AS snapshot,
    (SELECT p.sealed::text::bigint FROM {schema}.event_partition p ORDER BY p.number LIMIT 1) AS kept_from
