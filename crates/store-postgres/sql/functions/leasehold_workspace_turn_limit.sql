-- Rejects a workspace_turn row whose limit, pause or deletion differs from its workspace; for a trigger.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_workspace_turn_limit() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM 1 FROM {schema}.workspace w
    WHERE w.id = NEW.workspace_id AND w.concurrency_limit = NEW.concurrency_limit AND w.paused = NEW.paused
        AND (w.deleted_at IS NOT NULL) = NEW.deleted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'workspace_turn of workspace % must have the limit, pause and deletion of the workspace', NEW.workspace_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_turn_limit', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$
