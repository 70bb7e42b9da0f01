-- Puts counts of a workspace beside the truth.
UPDATE workspace_turn SET dispatched = dispatched + 3, completed = completed - 3 WHERE workspace_id = ?1
