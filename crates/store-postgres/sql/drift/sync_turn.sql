-- Copies the limit, pause and deletion of workspace $1 to its turn row.
UPDATE {schema}.workspace_turn t
SET concurrency_limit = w.concurrency_limit, paused = w.paused, deleted = w.deleted_at IS NOT NULL, ready = false,
    has_room = true, written_by = pg_current_xact_id()
FROM {schema}.workspace w
WHERE t.workspace_id = $1 AND w.id = $1 AND (t.concurrency_limit <> w.concurrency_limit OR t.paused <> w.paused
    OR t.deleted <> (w.deleted_at IS NOT NULL))
