-- Sets the length of a workspace's line to 0.
UPDATE workspace_turn SET waiting = 0 WHERE workspace_id = ?1
