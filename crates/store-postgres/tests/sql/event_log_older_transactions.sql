-- Returns whether every open transaction is newer than the second partition of the event log.
SELECT sealed <= pg_snapshot_xmin(pg_current_snapshot()) AS over FROM leasehold.event_partition WHERE number = 1
