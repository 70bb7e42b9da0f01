-- Sets held_at_most to zero.
UPDATE workspace_turn SET held_at_most = 0 WHERE workspace_id = $1
