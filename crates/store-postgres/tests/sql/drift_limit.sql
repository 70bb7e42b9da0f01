-- Writes another limit to the turn row than the workspace has.
UPDATE leasehold.workspace_turn SET concurrency_limit = 99 WHERE workspace_id = $1
