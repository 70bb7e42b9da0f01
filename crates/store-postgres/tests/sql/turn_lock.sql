-- Locks the turn of a workspace.
SELECT workspace_id FROM leasehold.workspace_turn WHERE workspace_id = $1 FOR UPDATE
