-- Reads the folded number of pending requests of a workspace.
SELECT pending FROM leasehold.workspace_turn WHERE workspace_id = $1
