-- Rejects a second workspace_turn row for a workspace, or one without a workspace; for a trigger.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_workspace_turn_once() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM 1 FROM {schema}.workspace WHERE id = NEW.workspace_id FOR UPDATE;
    IF NOT FOUND OR EXISTS (SELECT 1 FROM {schema}.workspace_turn WHERE workspace_id = NEW.workspace_id) THEN
        RAISE EXCEPTION 'workspace % does not exist, or has a workspace_turn row already', NEW.workspace_id
            USING ERRCODE = 'unique_violation', CONSTRAINT = 'workspace_turn_once', TABLE = 'workspace_turn';
    END IF;
    RETURN NEW;
END
$$
