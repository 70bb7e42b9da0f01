-- Deletes the turn row.
DELETE FROM workspace_turn WHERE workspace_id = $1
