-- The snapshot of this moment.
SELECT pg_current_snapshot()::text AS snapshot
