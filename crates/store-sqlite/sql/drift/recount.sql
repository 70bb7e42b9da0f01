-- Recounts the requests of a workspace.
UPDATE workspace_turn
SET pending = c.pending, claimed = c.claimed, dispatched = c.dispatched, completed = c.completed, failed = c.failed,
    waiting = c.waiting, open_bytes = c.open_bytes
FROM (
    SELECT count(*) FILTER (WHERE status = 'PENDING') AS pending,
        count(*) FILTER (WHERE status = 'CLAIMED') AS claimed,
        count(*) FILTER (WHERE status = 'DISPATCHED') AS dispatched,
        count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
        count(*) FILTER (WHERE status = 'FAILED') AS failed,
        count(*) FILTER (WHERE due = 1 AND execution_id IS NULL) AS waiting,
        coalesce(sum(bytes + execution_bytes) FILTER (WHERE finished_at IS NULL), 0) AS open_bytes
    FROM workflow_execution_queue WHERE workspace_id = ?1
) c
WHERE workspace_turn.workspace_id = ?1
