-- Marks a workspace as ready, whether it is or not.
UPDATE workspace_turn SET has_room = 1, waiting = waiting + 1 WHERE workspace_id = ?1
