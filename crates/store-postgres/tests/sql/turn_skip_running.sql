-- Moves oldest_admission past the RUNNING executions.
UPDATE leasehold.workspace_turn SET oldest_admission = 1000000 WHERE workspace_id = $1
