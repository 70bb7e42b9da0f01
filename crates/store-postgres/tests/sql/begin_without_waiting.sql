-- Begins a transaction that fails instead of waiting for a lock.
BEGIN; SET LOCAL lock_timeout = '1s'
