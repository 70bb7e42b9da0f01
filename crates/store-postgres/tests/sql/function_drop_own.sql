-- Drops Leasehold's function, but not an overload of the same name.
DROP FUNCTION leasehold.leasehold_enqueue(uuid, uuid, jsonb, integer, timestamptz, text, interval, text, text, jsonb)
