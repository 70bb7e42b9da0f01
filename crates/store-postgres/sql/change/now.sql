-- Returns the current snapshot and the stream it belongs to: transaction numbers are valid only within one cluster.
SELECT pg_current_snapshot()::text AS snapshot, {schema}.leasehold_cluster() AS cluster, oid AS database
FROM pg_database WHERE datname = current_database()
