-- Replaces leasehold_notify by a function that counts its calls, including rolled back ones.
CREATE SEQUENCE notify_calls;
CREATE OR REPLACE FUNCTION leasehold_notify() RETURNS boolean LANGUAGE sql AS $$
    SELECT nextval('notify_calls') > 0
$$
