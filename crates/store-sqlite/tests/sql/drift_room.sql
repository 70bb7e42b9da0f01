-- Marks a workspace as having a free slot.
UPDATE workspace_turn SET has_room = 1 WHERE workspace_id = ?1
