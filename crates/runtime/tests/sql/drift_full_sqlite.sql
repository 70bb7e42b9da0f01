-- Says that a workspace is full, in SQLite.
UPDATE workspace_turn SET has_room = 0 WHERE workspace_id = $1
