-- Rolls the open transaction back.
ROLLBACK
