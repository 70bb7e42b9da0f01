-- Gives a whole group up.
ROLLBACK
