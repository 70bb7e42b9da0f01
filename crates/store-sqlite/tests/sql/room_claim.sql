-- Claims that a workspace has room and work, whatever is true.
UPDATE workspace_turn SET has_room = 1, waiting = waiting + 1 WHERE workspace_id = ?1
