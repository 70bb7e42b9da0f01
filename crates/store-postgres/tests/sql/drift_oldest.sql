-- Has a workspace count from far beyond what runs.
UPDATE workspace_turn SET oldest_admission = 1000000, stragglers = '{}' WHERE workspace_id = $1
