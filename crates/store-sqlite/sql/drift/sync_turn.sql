-- Copies the limit, pause and tombstone of a workspace to its turn row.
UPDATE workspace_turn
SET concurrency_limit = w.concurrency_limit, paused = w.paused, deleted = w.deleted_at IS NOT NULL
FROM workspace w
WHERE workspace_turn.workspace_id = ?1 AND w.id = ?1
