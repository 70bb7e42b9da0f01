-- Gives the open transaction a number, as its first write would.
SELECT pg_current_xact_id()
