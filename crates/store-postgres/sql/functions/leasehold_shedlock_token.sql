-- Raises the fencing token of a lock whose holder changes; for a trigger.
-- release: 1
-- Acquiring a lock writes locked_at; extending or releasing it does not. So the token rises with every change of holder,
-- even if the new holder does not write tokens. An update that raises the token itself is not changed.
CREATE OR REPLACE FUNCTION {schema}.leasehold_shedlock_token() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    NEW.fencing_token := OLD.fencing_token + 1;
    RETURN NEW;
END
$$
