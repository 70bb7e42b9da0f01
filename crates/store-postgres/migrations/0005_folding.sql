-- How what was appended becomes visible to claims: one fold at a time brings workspace_turn up to date.

-- Counts everything anew, and looks at every workspace anew. Needed after the rows came into another cluster, by a
-- restored dump or by replication, because the transaction numbers in them mean nothing there; leasehold_fold notices
-- and calls it. Also the repair after requests or executions were changed by hand without their events.
CREATE FUNCTION leasehold_rebuild() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    LOCK TABLE workflow_execution_queue, workspace_turn IN SHARE ROW EXCLUSIVE MODE;
    UPDATE request_event SET xid = '3';
    UPDATE workspace_turn t
    SET pending = coalesce(c.pending, 0), claimed = coalesce(c.claimed, 0), dispatched = coalesce(c.dispatched, 0),
        completed = coalesce(c.completed, 0), failed = coalesce(c.failed, 0),
        has_work = true, has_room = true, ready = t.deleted OR (NOT t.paused AND t.concurrency_limit > 0),
        line_rank = DEFAULT, line_at = DEFAULT, line_id = DEFAULT,
        written_by = pg_current_xact_id()
    FROM workspace w
    LEFT JOIN (
        SELECT workspace_id,
            count(*) FILTER (WHERE status = 'PENDING') AS pending,
            count(*) FILTER (WHERE status = 'CLAIMED') AS claimed,
            count(*) FILTER (WHERE status = 'DISPATCHED') AS dispatched,
            count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
            count(*) FILTER (WHERE status = 'FAILED') AS failed
        FROM workflow_execution_queue GROUP BY workspace_id
    ) c ON c.workspace_id = w.id
    WHERE t.workspace_id = w.id;
    PERFORM setval('admission_number', greatest(
        (SELECT last_value FROM admission_number),
        (SELECT max(turn) FROM workspace_turn),
        (SELECT max(admission) FROM workflow_execution)));
    DELETE FROM workspace_delta;
    DELETE FROM request_fold;
    INSERT INTO request_fold (position, round_from)
    SELECT pg_current_snapshot(), coalesce(min(turn), 0) FROM workspace_turn;
END
$$;

-- Folds every event committed since the last time into workspace_turn, once each: counts, and which workspaces have
-- work or room again; those take their place in the round. Returns how many events. One at a time.
-- It looks twice: first for which rows to lock, then, with nobody else writing them, for what to write; what commits
-- between the two looks is left to the next fold. It waits for nobody: what belongs to a row that is busy is parked,
-- and claims leave such a workspace alone until it is folded.
-- No ready workspace has its turn before round_from, so that a claim can begin there and need not pass the dead
-- versions of turns long taken. A workspace whose last turn is older goes right before it, which keeps the order.
CREATE FUNCTION leasehold_fold() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    last request_fold;
    seen pg_snapshot;
    touched uuid[];
    held uuid[];
    events bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    SELECT * INTO last FROM request_fold ORDER BY id DESC LIMIT 1;
    IF last.cluster <> (SELECT system_identifier FROM pg_control_system())
        OR pg_snapshot_xmax(last.position) > pg_snapshot_xmax(pg_current_snapshot())
        OR last.round_from > (SELECT last_value FROM admission_number)
    THEN
        PERFORM leasehold_rebuild();
        RETURN 0;
    END IF;

    SELECT pg_current_snapshot(), array_agg(DISTINCT workspace_id), count(request_id) INTO seen, touched, events
    FROM (
        SELECT workspace_id, request_id FROM request_event WHERE xid >= pg_snapshot_xmax(last.position)
        UNION ALL
        SELECT workspace_id, request_id FROM request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position)))
        UNION ALL
        SELECT workspace_id, NULL FROM workspace_delta
    ) e;
    IF touched IS NULL THEN
        RETURN 0;
    END IF;

    SELECT array_agg(w.id) INTO held FROM unnest(touched) AS w (id) CROSS JOIN LATERAL (
        SELECT 1 FROM workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1 FOR UPDATE SKIP LOCKED
    ) t;

    WITH fresh AS (
        SELECT workspace_id, from_status, to_status, rank, line_at
        FROM request_event WHERE xid >= pg_snapshot_xmax(last.position) AND pg_visible_in_snapshot(xid, seen)
        UNION ALL
        SELECT workspace_id, from_status, to_status, rank, line_at
        FROM request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND pg_visible_in_snapshot(xid, seen)
    ), parked AS (
        DELETE FROM workspace_delta d USING unnest(held) AS h (id) WHERE d.workspace_id = h.id
        RETURNING d.*
    ), change AS MATERIALIZED (
        SELECT workspace_id, bool_or(anew) AS anew, bool_or(room) AS room, min(rank) AS rank, min(line_at) AS line_at,
            sum(pending) AS pending, sum(claimed) AS claimed, sum(dispatched) AS dispatched,
            sum(completed) AS completed, sum(failed) AS failed
        FROM (
            SELECT workspace_id, false AS anew,
                from_status IN ('CLAIMED', 'DISPATCHED') AND to_status <> 'DISPATCHED' AS room, rank, line_at,
                (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (to_status = 'COMPLETED')::int AS completed,
                (to_status = 'FAILED')::int AS failed
            FROM fresh
            UNION ALL
            SELECT workspace_id, anew, room, CASE WHEN anew THEN -32768 ELSE rank END,
                CASE WHEN anew THEN '-infinity' ELSE line_at END, pending, claimed, dispatched, completed, failed
            FROM parked
        ) e
        GROUP BY workspace_id
    ), postponed AS (
        INSERT INTO workspace_delta
            (workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed)
        SELECT c.workspace_id, c.anew, coalesce(c.room, false), c.rank, c.line_at, c.pending, c.claimed, c.dispatched,
            c.completed, c.failed
        FROM change c LEFT JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        -- Asked for the few that are busy, one by one: as a join it may read every workspace's row.
        WHERE CASE WHEN h.id IS NULL
            THEN EXISTS (SELECT 1 FROM workspace_turn t WHERE t.workspace_id = c.workspace_id) END
    ), next AS (
        SELECT t.tid, c.*,
            t.turn, t.deleted, t.paused, t.concurrency_limit, t.ready AS was_ready,
            t.has_work OR c.line_at IS NOT NULL AS has_work,
            t.has_room OR coalesce(c.room, false) OR c.anew AS has_room
        FROM change c JOIN unnest(held) AS h (id) ON h.id = c.workspace_id
        CROSS JOIN LATERAL (
            SELECT ctid AS tid, * FROM workspace_turn WHERE workspace_id = c.workspace_id ORDER BY turn DESC LIMIT 1
        ) t
    ), placed AS (
        SELECT *, CASE WHEN joins AND turn < last.round_from
            THEN last.round_from - row_number() OVER (
                PARTITION BY joins AND turn < last.round_from ORDER BY turn DESC, workspace_id DESC)
            ELSE turn END AS place
        FROM (
            SELECT *, NOT was_ready AND has_work
                AND (deleted OR (has_room AND NOT paused AND concurrency_limit > 0)) AS joins
            FROM next
        ) n
    ), turned AS (
        UPDATE workspace_turn t
        SET pending = t.pending + p.pending, claimed = t.claimed + p.claimed, dispatched = t.dispatched + p.dispatched,
            completed = t.completed + p.completed, failed = t.failed + p.failed,
            has_work = p.has_work, has_room = p.has_room, ready = p.was_ready OR p.joins, turn = p.place,
            line_rank = least(t.line_rank, p.rank),
            line_at = CASE WHEN (p.rank, p.line_at) < (t.line_rank, t.line_at) THEN p.line_at ELSE t.line_at END,
            line_id = CASE WHEN (p.rank, p.line_at) <= (t.line_rank, t.line_at)
                THEN '00000000-0000-0000-0000-000000000000' ELSE t.line_id END,
            written_by = pg_current_xact_id()
        FROM placed p
        WHERE t.ctid = p.tid
        RETURNING CASE WHEN p.joins THEN t.turn END AS joined_at
    )
    INSERT INTO request_fold (position, cluster, parked, round_from)
    SELECT seen, last.cluster, ARRAY(SELECT unnest(touched) EXCEPT SELECT unnest(held)), least(
        coalesce((SELECT turn FROM workspace_turn WHERE ready AND turn >= last.round_from ORDER BY turn LIMIT 1), 9e18),
        coalesce((SELECT min(joined_at) FROM turned), 9e18),
        (SELECT last_value FROM admission_number))::bigint;
    DELETE FROM request_fold WHERE id = last.id;
    RETURN events;
END
$$;

-- Puts requests whose time has come into their workspaces' lines, at most `most` of them, and returns how many. The
-- next fold makes their workspaces ready.
CREATE FUNCTION leasehold_ripen(now timestamptz, most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ripened bigint;
BEGIN
    PERFORM 1 FROM workflow_execution_queue WHERE NOT due AND run_at <= now LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- The fold's lock comes first wherever both are taken.
    PERFORM pg_advisory_xact_lock(7308332186);
    WITH ripe AS MATERIALIZED (
        SELECT ctid AS tid FROM workflow_execution_queue
        WHERE NOT due AND run_at <= now
        ORDER BY run_at LIMIT most
        FOR UPDATE SKIP LOCKED
    ), lined AS (
        UPDATE workflow_execution_queue q SET due = true FROM ripe WHERE q.ctid = ripe.tid
        RETURNING q.workspace_id, q.rank, q.created_at, q.execution_id
    ), noted AS (
        INSERT INTO workspace_delta (workspace_id, rank, line_at)
        SELECT workspace_id, min(rank), min(created_at) FROM lined WHERE execution_id IS NULL GROUP BY workspace_id
    )
    SELECT count(*) INTO ripened FROM lined;
    RETURN ripened;
END
$$;

-- Deletes finished requests with their executions and events, at most `most`, and returns how many. Under the fold's
-- lock and after a fold, so that none goes whose events are not counted yet.
CREATE FUNCTION leasehold_prune(completed_before timestamptz, failed_before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    folded pg_snapshot;
    pruned bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    PERFORM leasehold_fold();
    SELECT position INTO folded FROM request_fold ORDER BY id DESC LIMIT 1;
    WITH old AS (
        (SELECT request_id AS id FROM workflow_execution
        WHERE status = 'COMPLETED' AND finished_at < completed_before ORDER BY finished_at LIMIT most)
        UNION ALL
        (SELECT id FROM workflow_execution_queue WHERE failed_at < failed_before ORDER BY failed_at LIMIT most)
        LIMIT most
    ), doomed AS MATERIALIZED (
        SELECT q.id FROM workflow_execution_queue q
        WHERE q.id = ANY (ARRAY(SELECT id FROM old)) AND q.status IN ('COMPLETED', 'FAILED') AND NOT EXISTS (
            SELECT 1 FROM request_event e WHERE e.request_id = q.id AND NOT pg_visible_in_snapshot(e.xid, folded))
        FOR UPDATE OF q SKIP LOCKED
    ), forgotten AS (
        DELETE FROM request_event WHERE request_id = ANY (ARRAY(SELECT id FROM doomed))
    ), gone AS (
        DELETE FROM workflow_execution_queue WHERE id = ANY (ARRAY(SELECT id FROM doomed))
        RETURNING workspace_id, status
    ), noted AS (
        INSERT INTO workspace_delta (workspace_id, completed, failed)
        SELECT workspace_id, -count(*) FILTER (WHERE status = 'COMPLETED'), -count(*) FILTER (WHERE status = 'FAILED')
        FROM gone GROUP BY workspace_id
    )
    SELECT count(*) INTO pruned FROM gone;
    RETURN pruned;
END
$$;
