-- Copies the limit, the pause and the deletion of a workspace to its row in workspace_turn; for triggers.
-- release: 1
CREATE OR REPLACE FUNCTION {schema}.leasehold_workspace_sync_turn() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {schema}.workspace_turn (workspace_id, concurrency_limit, paused, deleted)
        VALUES (NEW.id, NEW.concurrency_limit, NEW.paused, NEW.deleted_at IS NOT NULL);
    ELSE
        UPDATE {schema}.workspace_turn
        SET concurrency_limit = NEW.concurrency_limit,
            paused = NEW.paused,
            deleted = NEW.deleted_at IS NOT NULL,
            ready = ready AND (NEW.deleted_at IS NOT NULL OR (NOT NEW.paused AND NEW.concurrency_limit > 0)),
            has_room = true,
            written_by = pg_current_xact_id()
        WHERE workspace_id = NEW.id;
        INSERT INTO {schema}.workspace_delta (workspace_id, anew) VALUES (NEW.id, true);
    END IF;
    RETURN NULL;
END
$$
