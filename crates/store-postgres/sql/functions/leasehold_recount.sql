-- Corrects the recorded figures of a workspace by what its requests say, and marks it to be examined again. Returns whether a figure was wrong.
-- release: 1
-- Counts in one snapshot, and inserts the difference to the figures recorded in that snapshot: the folded ones and the unfolded changes. The next
-- fold adds it. So it locks no row, waits for no transaction that writes, and reads no event that is folded. One recount at a time: two with the
-- same snapshot would insert the same difference twice. Must run in READ COMMITTED, in which the snapshot is taken after the lock.
CREATE OR REPLACE FUNCTION {schema}.leasehold_recount(of_workspace uuid) RETURNS boolean LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
DECLARE
    was_wrong boolean;
BEGIN
    IF current_setting('transaction_isolation'::text) <> 'read committed'::text THEN
        RAISE EXCEPTION 'leasehold_recount needs isolation level READ COMMITTED, the transaction has %',
            current_setting('transaction_isolation'::text) USING ERRCODE = 'invalid_transaction_state';
    END IF;
    PERFORM pg_advisory_xact_lock(7308332200::bigint);
    WITH turn AS (
        SELECT t.pending, t.claimed, t.dispatched, t.completed, t.failed, t.open_bytes FROM {schema}.workspace_turn t
        WHERE t.workspace_id = of_workspace ORDER BY t.turn DESC LIMIT 1
    ), counted AS (
        SELECT count(*) FILTER (WHERE q.status = 'PENDING') AS pending,
            count(*) FILTER (WHERE q.status = 'CLAIMED') AS claimed,
            count(*) FILTER (WHERE q.status = 'DISPATCHED') AS dispatched,
            count(*) FILTER (WHERE q.status = 'COMPLETED') AS completed,
            count(*) FILTER (WHERE q.status = 'FAILED') AS failed,
            coalesce(sum(q.bytes + coalesce(q.execution_bytes, 0)) FILTER (WHERE q.finished_at IS NULL), 0)::bigint AS open_bytes
        FROM {schema}.workflow_execution_queue q WHERE q.workspace_id = of_workspace
    ), fresh AS (
        SELECT coalesce(sum(d.pending), 0)::bigint AS pending, coalesce(sum(d.claimed), 0)::bigint AS claimed,
            coalesce(sum(d.dispatched), 0)::bigint AS dispatched, coalesce(sum(d.completed), 0)::bigint AS completed,
            coalesce(sum(d.failed), 0)::bigint AS failed, coalesce(sum(d.open_bytes), 0)::bigint AS open_bytes
        FROM (SELECT f.position, f.events_from FROM {schema}.request_fold f ORDER BY f.id DESC LIMIT 1) f CROSS JOIN LATERAL (
            SELECT (e.to_status = 'PENDING')::int - (e.from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (e.to_status = 'CLAIMED')::int - (e.from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (e.to_status = 'DISPATCHED')::int - (e.from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (e.to_status = 'COMPLETED')::int AS completed, (e.to_status = 'FAILED')::int AS failed, e.bytes AS open_bytes
            FROM (
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
                UNION ALL
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
            ) e
            WHERE e.workspace_id = of_workspace
            UNION ALL
            SELECT d.pending, d.claimed, d.dispatched, d.completed, d.failed, d.open_bytes
            FROM (
                SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
                UNION ALL
                SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
            ) d
            WHERE d.workspace_id = of_workspace
        ) d
    )
    INSERT INTO {schema}.workspace_delta AS w (workspace_id, anew, pending, claimed, dispatched, completed, failed, open_bytes)
    SELECT of_workspace, true, c.pending - t.pending - f.pending, c.claimed - t.claimed - f.claimed,
        c.dispatched - t.dispatched - f.dispatched, c.completed - t.completed - f.completed, c.failed - t.failed - f.failed,
        c.open_bytes - t.open_bytes - f.open_bytes
    FROM turn t, counted c, fresh f
    RETURNING (w.pending, w.claimed, w.dispatched, w.completed, w.failed, w.open_bytes) <> (0::bigint, 0::bigint, 0::bigint, 0::bigint,
        0::bigint, 0::bigint) INTO was_wrong;
    RETURN coalesce(was_wrong, false);
END
$$
