-- Rolls back the writes for one item, without affecting the others.
ROLLBACK TO item
