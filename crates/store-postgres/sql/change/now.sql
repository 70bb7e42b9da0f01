-- The snapshot of this moment, and which stream it is of: transaction numbers mean nothing in another cluster.
SELECT pg_current_snapshot()::text AS snapshot, leasehold_cluster() AS cluster, oid AS database
FROM pg_database WHERE datname = current_database()
