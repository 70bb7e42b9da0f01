-- Says that a workspace has room.
UPDATE workspace_turn SET has_room = 1 WHERE workspace_id = ?1
