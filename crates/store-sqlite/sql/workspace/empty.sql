-- Takes a workspace whose line is empty out of the round, should its number ever be wrong.
UPDATE workspace_turn SET waiting = 0 WHERE workspace_id = ?1
