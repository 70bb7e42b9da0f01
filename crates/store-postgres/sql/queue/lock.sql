-- Waits for a running claim of the queue $1, and blocks new ones.
SELECT pg_advisory_xact_lock(730834, $1)
