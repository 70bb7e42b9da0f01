-- Begins to look at the database as it is now, and does not end.
BEGIN ISOLATION LEVEL REPEATABLE READ
