-- An accident, beside a function of the same name that stays.
DROP FUNCTION leasehold_enqueue(uuid, uuid, jsonb, integer, timestamptz, text, interval, text, text, jsonb)
