-- Opens a snapshot and keeps it.
BEGIN ISOLATION LEVEL REPEATABLE READ
