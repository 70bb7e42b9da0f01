-- Removes a workspace without a free slot from the round-robin, in case its flag is wrong.
UPDATE workspace_turn SET has_room = 0 WHERE workspace_id = ?1
