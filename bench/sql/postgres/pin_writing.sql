-- Assigns a transaction id to the open transaction, as its first write would.
SELECT pg_current_xact_id()
