-- Waits for the claim under way in the queue $1, and keeps others waiting.
SELECT pg_advisory_xact_lock(730834, $1)
