-- Gives the kept record of a workspace its limit, pause and tombstone.
UPDATE workspace_turn
SET concurrency_limit = w.concurrency_limit, paused = w.paused, deleted = w.deleted_at IS NOT NULL
FROM workspace w
WHERE workspace_turn.workspace_id = ?1 AND w.id = ?1
