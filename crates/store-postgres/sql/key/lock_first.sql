-- Serializes the creation of the first key.
SELECT pg_advisory_xact_lock(7308332191)
