-- Has every call of leasehold_wake counted, also those that are rolled back.
CREATE SEQUENCE wake_calls;
CREATE OR REPLACE FUNCTION leasehold_wake() RETURNS boolean LANGUAGE sql AS $$
    SELECT nextval('wake_calls') > 0
$$
