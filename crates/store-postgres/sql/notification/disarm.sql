-- Releases the waiter lock; from then on no process notifies.
SELECT pg_advisory_unlock_all()
