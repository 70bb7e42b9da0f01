-- An accident.
DROP FUNCTION leasehold_enqueue
