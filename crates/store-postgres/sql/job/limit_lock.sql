-- Waits for running claims, and blocks new ones.
SELECT pg_advisory_xact_lock(730833, 0)
