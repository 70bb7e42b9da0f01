-- Rolls back the writes of one operation, without affecting the others.
ROLLBACK TO operation
