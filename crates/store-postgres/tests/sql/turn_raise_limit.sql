-- Writes another limit to the turn row than its workspace has.
UPDATE leasehold.workspace_turn SET concurrency_limit = 50 WHERE workspace_id = $1
