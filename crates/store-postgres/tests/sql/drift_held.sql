-- Says that nothing is held in a workspace.
UPDATE workspace_turn SET held_at_most = 0 WHERE workspace_id = $1
