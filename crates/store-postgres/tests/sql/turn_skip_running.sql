-- Says that all that ran has ended.
UPDATE workspace_turn SET oldest_admission = 1000000 WHERE workspace_id = $1
