-- Begins one operation of a group.
SAVEPOINT operation
