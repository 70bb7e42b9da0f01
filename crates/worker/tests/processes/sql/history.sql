-- Every recorded change, in commit order.
SELECT id, xid::text::bigint AS xid, pg_xact_commit_timestamp(xid::xid) AS committed_at, what, queue_id, token, worker,
    claimed_at, expires_at, ids, max_running
FROM test_change ORDER BY pg_xact_commit_timestamp(xid::xid), xid, id
