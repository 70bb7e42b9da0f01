-- Drops a function.
DROP FUNCTION leasehold_uuid7
