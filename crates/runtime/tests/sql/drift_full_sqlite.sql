-- Marks a workspace as having no free slot, in SQLite.
UPDATE workspace_turn SET has_room = 0 WHERE workspace_id = $1
