-- Begins the work on one of many items of an operation.
SAVEPOINT item
