-- Rolls back a group.
ROLLBACK
