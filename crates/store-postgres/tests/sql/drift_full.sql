-- Marks a workspace as full.
UPDATE leasehold.workspace_turn SET has_room = false, ready = false WHERE workspace_id = $1
