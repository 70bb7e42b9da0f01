-- Deletes the turn row.
DELETE FROM leasehold.workspace_turn WHERE workspace_id = $1
