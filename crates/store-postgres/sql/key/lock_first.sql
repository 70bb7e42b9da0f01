-- One first key at a time.
SELECT pg_advisory_xact_lock(7308332191)
