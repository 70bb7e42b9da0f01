-- Folds every event committed since the last call into workspace_turn, once each, and returns how many.
-- release: 1
-- Updates the counts, and marks workspaces ready that have work and room again; these join the round. One fold at a time.
-- Reads twice: first which rows to lock, then, with the rows locked, what to write; the next fold handles events that
-- commit between the two reads. Does not wait for row locks: changes of a locked row are parked in workspace_delta, and
-- claims skip such a workspace until it is folded.
-- Reads no event before events_from: with old partitions the log costs a fold nothing.
-- Reads deltas like events: those that the last fold did not see. The deltas of its own transaction count as seen because they are deleted here.
-- A delta or a position that another transaction has locked (xmax) is not deleted, but no later fold reads it; leasehold_prune_requests deletes it.
-- No ready workspace has a turn before round_from, so a claim can begin there and need not scan the dead versions of old
-- turns. A workspace whose last turn is older is placed right before it, which keeps the order.
CREATE OR REPLACE FUNCTION {schema}.leasehold_fold() RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    last {schema}.request_fold;
    seen pg_snapshot;
    touched uuid[];
    held uuid[];
    events bigint;
    own xid8 := pg_current_xact_id_if_assigned();
    begun timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    begun := clock_timestamp();
    SELECT * INTO last FROM {schema}.request_fold ORDER BY id DESC LIMIT 1;
    SELECT pg_current_snapshot(), array_agg(DISTINCT workspace_id), count(request_id) INTO seen, touched, events
    FROM (
        SELECT workspace_id, request_id FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax(last.position)
            AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, request_id FROM {schema}.request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, NULL FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(last.position)
        UNION ALL
        SELECT workspace_id, NULL FROM {schema}.workspace_delta
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position)))
    ) e;
    IF touched IS NULL THEN
        RETURN 0;
    END IF;
    IF pg_visible_in_snapshot(pg_current_xact_id_if_assigned(), seen) THEN
        seen := {schema}.leasehold_hide_self(seen);
    END IF;

    SELECT array_agg(w.id) INTO held FROM unnest(touched) AS w (id) CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
    ) t;

    WITH fresh AS (
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes
        FROM {schema}.request_event
        WHERE xid >= pg_snapshot_xmax(last.position) AND id >= last.events_from AND pg_visible_in_snapshot(xid, seen)
        UNION ALL
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes
        FROM {schema}.request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from AND pg_visible_in_snapshot(xid, seen)
    ), parked AS MATERIALIZED (
        SELECT d.* FROM (
            SELECT ctid AS tid, * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(last.position)
            UNION ALL
            SELECT ctid AS tid, * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position)))
        ) d
        WHERE pg_visible_in_snapshot(d.xid, seen) OR d.xid = own
    ), deleted AS (
        DELETE FROM {schema}.workspace_delta WHERE ctid = ANY (ARRAY(SELECT tid FROM parked)) AND xmax = '0'
    ), change AS MATERIALIZED (
        SELECT workspace_id, bool_or(anew) AS anew, bool_or(room) AS room, min(rank) AS rank, min(line_at) AS line_at,
            sum(pending)::bigint AS pending, sum(claimed)::bigint AS claimed, sum(dispatched)::bigint AS dispatched,
            sum(completed)::bigint AS completed, sum(failed)::bigint AS failed, coalesce(sum(open_bytes), 0)::bigint AS open_bytes
        FROM (
            SELECT workspace_id, false AS anew,
                from_status IN ('CLAIMED', 'DISPATCHED') AND to_status <> 'DISPATCHED' AS room, rank, line_at,
                (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (to_status = 'COMPLETED')::int AS completed,
                (to_status = 'FAILED')::int AS failed,
                bytes AS open_bytes
            FROM fresh
            UNION ALL
            SELECT workspace_id, anew, room, CASE WHEN anew THEN -32768 ELSE rank END,
                CASE WHEN anew THEN '-infinity' ELSE line_at END, pending, claimed, dispatched, completed, failed,
                open_bytes
            FROM parked
        ) e
        GROUP BY workspace_id
    ), postponed AS (
        INSERT INTO {schema}.workspace_delta
            (workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes)
        SELECT c.workspace_id, c.anew, coalesce(c.room, false), c.rank, c.line_at, c.pending, c.claimed, c.dispatched,
            c.completed, c.failed, c.open_bytes
        FROM change c LEFT JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        -- EXISTS, for the few locked ones: a join might read every workspace's row.
        WHERE CASE WHEN h.id IS NULL
            THEN EXISTS (SELECT 1 FROM {schema}.workspace_turn t WHERE t.workspace_id = c.workspace_id) END
    ), next AS (
        SELECT t.tid, c.*,
            t.turn, t.deleted, t.paused, t.concurrency_limit, t.ready AS was_ready,
            t.has_work OR c.line_at IS NOT NULL AS has_work,
            t.has_room OR coalesce(c.room, false) OR c.anew AS has_room
        FROM change c JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        CROSS JOIN LATERAL (
            SELECT ctid AS tid, * FROM {schema}.workspace_turn WHERE workspace_id = c.workspace_id ORDER BY turn DESC LIMIT 1
        ) t
    ), placed AS (
        SELECT *, CASE WHEN joins AND turn < last.round_from
            THEN last.round_from - row_number() OVER (
                PARTITION BY joins AND turn < last.round_from ORDER BY turn DESC, workspace_id DESC)
            ELSE turn END AS new_turn
        FROM (
            SELECT *, (anew OR NOT was_ready) AND has_work
                AND (deleted OR (has_room AND NOT paused AND concurrency_limit > 0)) AS joins
            FROM next
        ) n
    ), turned AS (
        UPDATE {schema}.workspace_turn t
        SET pending = t.pending + p.pending, claimed = t.claimed + p.claimed, dispatched = t.dispatched + p.dispatched,
            completed = t.completed + p.completed, failed = t.failed + p.failed, open_bytes = t.open_bytes + p.open_bytes,
            has_work = p.has_work, has_room = p.has_room, ready = p.was_ready OR p.joins, turn = p.new_turn,
            line_rank = least(t.line_rank, p.rank),
            line_at = CASE WHEN (p.rank, p.line_at) < (t.line_rank, t.line_at) THEN p.line_at ELSE t.line_at END,
            line_id = CASE WHEN (p.rank, p.line_at) <= (t.line_rank, t.line_at)
                THEN '00000000-0000-0000-0000-000000000000' ELSE t.line_id END,
            written_by = pg_current_xact_id()
        FROM placed p
        WHERE t.ctid = p.tid
        RETURNING CASE WHEN p.joins THEN t.turn END AS joined_at
    )
    INSERT INTO {schema}.request_fold (position, folded_at, events_from, parked, round_from)
    SELECT seen, begun, last.events_from, ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(held)), least(
        coalesce((SELECT turn FROM {schema}.workspace_turn WHERE ready AND turn >= last.round_from ORDER BY turn LIMIT 1), 9e18),
        coalesce((SELECT min(joined_at) FROM turned), 9e18),
        (SELECT last_value FROM {schema}.admission_number))::bigint;
    DELETE FROM {schema}.request_fold WHERE id = last.id AND xmax = '0';
    RETURN events;
END
$$
