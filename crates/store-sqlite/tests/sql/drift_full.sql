-- Marks a workspace as full.
UPDATE workspace_turn SET has_room = 0 WHERE workspace_id = ?1
