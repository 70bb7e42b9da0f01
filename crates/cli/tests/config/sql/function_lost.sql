-- A database that lacks a function.
DROP FUNCTION leasehold_uuid7
