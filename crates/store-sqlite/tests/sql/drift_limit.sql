-- Sets a limit in the turn row that differs from the workspace's.
UPDATE workspace_turn SET concurrency_limit = 99 WHERE workspace_id = ?1
