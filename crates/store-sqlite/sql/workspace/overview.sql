-- Lists the ?1 busiest workspaces. Slots in use are numbered without a gap, so the highest number gives their count.
SELECT w.id, w.name, w.plan, w.limit_override, w.max_pending_override, w.max_open_bytes_override, w.paused, w.created_at, w.deleted_at,
    t.pending, t.claimed, t.dispatched, t.completed, t.failed, t.concurrency_limit, 1 + coalesce((
        SELECT slot FROM workflow_execution INDEXED BY execution_slot_once
        WHERE workspace_id = w.id AND status = 'RUNNING' ORDER BY slot DESC LIMIT 1), -1) AS in_use
FROM (
    SELECT * FROM workspace_turn WHERE deleted = 0
    ORDER BY claimed + dispatched DESC, pending DESC, workspace_id LIMIT ?1
) t CROSS JOIN workspace w ON w.id = t.workspace_id
ORDER BY t.claimed + t.dispatched DESC, t.pending DESC, w.name
