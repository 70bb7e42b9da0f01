-- Returns every event in commit order, with the snapshot of its claim.
SELECT e.xid::text::bigint AS xid, e.request_id, e.workspace_id, e.from_status, e.to_status, e.at, e.by_whom, e.reason,
    q.priority, q.created_at, e.line_at IS NOT NULL AS due, e.test_seen::text AS seen,
    pg_xact_commit_timestamp(e.xid::xid) AS committed_at
FROM leasehold.request_event e JOIN leasehold.workflow_execution_queue q ON q.id = e.request_id
ORDER BY pg_xact_commit_timestamp(e.xid::xid), e.xid, e.id
