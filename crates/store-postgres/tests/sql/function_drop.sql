-- Drops a function.
DROP FUNCTION leasehold_enqueue
