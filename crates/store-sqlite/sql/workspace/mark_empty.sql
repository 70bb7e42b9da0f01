-- Removes a workspace with an empty line from the round-robin, in case its counter is wrong.
UPDATE workspace_turn SET waiting = 0 WHERE workspace_id = ?1
