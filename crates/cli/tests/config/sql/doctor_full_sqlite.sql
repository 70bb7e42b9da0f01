-- Marks every workspace as full.
UPDATE workspace_turn SET has_room = 0
