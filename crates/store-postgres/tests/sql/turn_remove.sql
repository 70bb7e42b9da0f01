-- Takes the turn row away.
DELETE FROM workspace_turn WHERE workspace_id = $1
