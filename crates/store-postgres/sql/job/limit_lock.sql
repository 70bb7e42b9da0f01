-- Waits for the claims under way, and keeps others waiting.
SELECT pg_advisory_xact_lock(730833, 0)
