-- Marks every workspace as full.
UPDATE workspace_turn SET has_room = false, ready = false
