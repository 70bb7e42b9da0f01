-- Writes wrong counts for a workspace.
UPDATE leasehold.workspace_turn SET dispatched = dispatched + 3, completed = completed - 3 WHERE workspace_id = $1
