-- Puts a workspace behind all others: its turn was spent without an admission.
UPDATE workspace_turn SET turn = ?2 WHERE workspace_id = ?1
