-- Blocks folds until the transaction ends. Claims wait for folds, so the transaction waits only shortly for rows from then on.
SELECT pg_advisory_xact_lock(7308332186), set_config('lock_timeout', '30ms', true)
