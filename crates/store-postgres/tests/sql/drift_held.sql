-- Sets held_at_most of a workspace to zero.
UPDATE leasehold.workspace_turn SET held_at_most = 0 WHERE workspace_id = $1
