-- Moves oldest_admission far beyond the RUNNING executions.
UPDATE leasehold.workspace_turn SET oldest_admission = 1000000, stragglers = '{}' WHERE workspace_id = $1
