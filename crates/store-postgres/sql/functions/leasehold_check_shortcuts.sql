-- Rejects a change of the count shortcuts in workspace_turn that would hide a RUNNING execution; for a trigger.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_check_shortcuts() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    hides boolean := false;
BEGIN
    IF NEW.oldest_admission > OLD.oldest_admission THEN
        hides := EXISTS (
            SELECT 1 FROM {schema}.workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING'
                AND e.admission >= OLD.oldest_admission AND e.admission < NEW.oldest_admission
                AND NOT (e.admission = ANY (NEW.stragglers)));
    END IF;
    IF NEW.stragglers <> OLD.stragglers THEN
        hides := hides OR EXISTS (
            SELECT 1 FROM (SELECT unnest(OLD.stragglers) EXCEPT SELECT unnest(NEW.stragglers)) AS s (admission)
            CROSS JOIN LATERAL (
                SELECT 1 FROM {schema}.workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e);
    END IF;
    IF NEW.held_at_most < OLD.held_at_most THEN
        hides := hides OR NEW.held_at_most < (
            SELECT count(*) FROM {schema}.workflow_execution e
            WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission >= NEW.oldest_admission
        ) + (
            SELECT count(*) FROM unnest(NEW.stragglers) AS s (admission) CROSS JOIN LATERAL (
                SELECT 1 FROM {schema}.workflow_execution e
                WHERE e.workspace_id = NEW.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission
                LIMIT 1
            ) e
        );
    END IF;
    IF hides THEN
        RAISE EXCEPTION 'workspace_turn of workspace % must count every RUNNING execution', NEW.workspace_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$
