-- Takes slots of workspaces, and rejects a write that exceeds a concurrency limit, whichever program writes.
-- release: 1
-- Writes the workspace_turn row instead of only locking it, so that a transaction that counts with an old snapshot fails
-- instead of counting wrong. If another transaction writes the row meanwhile, the first try finds nothing to update; the
-- second try locks the row first.
CREATE OR REPLACE FUNCTION {schema}.leasehold_take_slots(workspaces uuid[], slots bigint[], lowest bigint[]) RETURNS void
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    rejected uuid;
    served bigint;
BEGIN
    FOR try IN 1..2 LOOP
        WITH taken AS (
            UPDATE {schema}.workspace_turn t
            SET held_at_most = CASE WHEN t.held_at_most + w.slots <= t.concurrency_limit THEN t.held_at_most + w.slots
                    -- leasehold_count_running, inlined: the call costs more than the count.
                    ELSE (
                        SELECT count(*) FROM {schema}.workflow_execution e
                        WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission >= t.oldest_admission
                    ) + (
                        SELECT count(*) FROM unnest(t.stragglers) AS s (admission) CROSS JOIN LATERAL (
                            SELECT 1 FROM {schema}.workflow_execution e
                            WHERE e.workspace_id = w.id AND e.status = 'RUNNING' AND e.admission = s.admission
                            LIMIT 1
                        ) e
                    ) END,
                written_by = pg_current_xact_id()
            FROM unnest(workspaces, slots, lowest) AS w (id, slots, lowest) CROSS JOIN LATERAL (
                SELECT ctid AS tid, written_by FROM {schema}.workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1
            ) n
            -- Also compares written_by: older PostgreSQL releases do not check ctid again after waiting for the row.
            WHERE t.ctid = n.tid AND t.written_by = n.written_by
            RETURNING t.workspace_id, t.held_at_most > t.concurrency_limit OR w.lowest < t.oldest_admission AS rejected
        )
        SELECT count(*), (array_agg(workspace_id) FILTER (WHERE taken.rejected))[1] INTO served, rejected FROM taken;
        EXIT WHEN served = cardinality(workspaces);
        -- The second try counts again what the first try wrote: held_at_most may be too high, never too low.
        PERFORM 1 FROM unnest(workspaces) AS w (id) CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE
        ) t;
    END LOOP;
    IF rejected IS NOT NULL OR served < cardinality(workspaces) THEN
        RAISE EXCEPTION 'workspace % has no free slot', coalesce(rejected, workspaces[1])
            USING ERRCODE = 'check_violation', CONSTRAINT = 'workspace_limit', TABLE = 'workflow_execution';
    END IF;
END
$$
