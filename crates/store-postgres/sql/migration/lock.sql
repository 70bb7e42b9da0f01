-- Serializes migrations.
SELECT pg_advisory_xact_lock(7308332185)
