-- Takes a slot for each inserted RUNNING execution; for a trigger.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_execution_inserted() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM {schema}.leasehold_take_slots(array_agg(i.workspace_id), array_agg(i.slots), array_agg(i.lowest))
    FROM (
        SELECT workspace_id, count(*) AS slots, min(admission) AS lowest
        FROM inserted WHERE status = 'RUNNING' GROUP BY workspace_id ORDER BY workspace_id
    ) i
    HAVING count(*) > 0;
    RETURN NULL;
END
$$
