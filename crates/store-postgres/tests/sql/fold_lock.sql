-- Takes the lock of the fold until the transaction ends.
SELECT pg_advisory_xact_lock(7308332186)
