-- Recomputes whether a workspace has a free slot.
UPDATE workspace_turn
SET has_room = concurrency_limit > (
    SELECT count(*) FROM workflow_execution e WHERE e.workspace_id = ?1 AND e.status = 'RUNNING')
WHERE workspace_id = ?1
