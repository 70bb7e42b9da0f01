-- Reads the folded number of pending requests of a workspace.
SELECT pending FROM workspace_turn WHERE workspace_id = $1
