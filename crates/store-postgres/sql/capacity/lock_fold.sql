-- Keeps what is folded as it is until the transaction ends.
SELECT pg_advisory_xact_lock(7308332186)
