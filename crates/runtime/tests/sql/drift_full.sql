-- Marks a workspace as having no free slot, in PostgreSQL.
UPDATE workspace_turn SET has_room = false, ready = false WHERE workspace_id = $1
