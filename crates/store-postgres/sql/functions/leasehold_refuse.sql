-- Rejects a write with the name of the violated constraint; for triggers.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    RAISE EXCEPTION 'write violates constraint "%" of table "%"', TG_ARGV[0], TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_ARGV[0], TABLE = TG_TABLE_NAME;
END
$$
