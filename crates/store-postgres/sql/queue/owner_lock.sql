-- Waits for other transactions that create queues of the workspace $1 or delete it, and blocks new ones.
SELECT pg_advisory_xact_lock(730835, hashtext($1::uuid::text))
