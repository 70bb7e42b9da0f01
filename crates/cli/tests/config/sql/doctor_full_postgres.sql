-- Says that all workspaces are full.
UPDATE workspace_turn SET has_room = false, ready = false
