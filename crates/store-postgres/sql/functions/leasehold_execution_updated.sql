-- Takes a slot for an execution that becomes RUNNING again; for a trigger.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_execution_updated() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM {schema}.leasehold_take_slots(ARRAY[NEW.workspace_id], ARRAY[1]::bigint[], ARRAY[NEW.admission]);
    RETURN NULL;
END
$$
