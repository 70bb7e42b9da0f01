-- Says that nobody waits in a workspace.
UPDATE workspace_turn SET waiting = 0 WHERE workspace_id = ?1
