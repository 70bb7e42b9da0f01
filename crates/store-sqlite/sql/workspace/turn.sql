-- Moves a workspace behind all others: a rejection used its turn.
UPDATE workspace_turn SET turn = ?2 WHERE workspace_id = ?1
