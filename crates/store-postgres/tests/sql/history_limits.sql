-- Returns every change of a limit with its commit time.
SELECT xid::text::bigint AS xid, workspace_id, concurrency_limit, paused, pg_xact_commit_timestamp(xid::xid) AS committed_at
FROM leasehold.test_limit ORDER BY pg_xact_commit_timestamp(xid::xid), xid, id
