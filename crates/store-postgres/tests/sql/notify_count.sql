-- Replaces leasehold_notify by a function that counts its calls, including rolled back ones.
CREATE SEQUENCE leasehold.notify_calls;
CREATE OR REPLACE FUNCTION leasehold.leasehold_notify() RETURNS boolean LANGUAGE sql AS $$
    SELECT nextval('leasehold.notify_calls') > 0
$$
