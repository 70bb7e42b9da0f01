-- Gives the turn row another limit than its workspace has.
UPDATE workspace_turn SET concurrency_limit = 50 WHERE workspace_id = $1
