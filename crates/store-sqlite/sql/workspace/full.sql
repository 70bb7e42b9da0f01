-- Takes a workspace that has no room out of the round, should its flag ever be wrong.
UPDATE workspace_turn SET has_room = 0 WHERE workspace_id = ?1
