-- Folds the waiting rows and the ends of leases of a queue's groups that were committed since the last fold into job_group, and returns the new round.
-- release: 1
-- The caller holds the advisory lock of the queue, and replaces the row of job_round. Rows of groups are replaced, not updated: the one with the highest
-- version is valid, so it waits for no row, and a version that another transaction has locked (xmax) stays until it is pruned.
-- Folds at most 10,000 waiting rows of transactions that it had not met, so that a backlog does not hold up one claim.
-- p_xid_offset: see leasehold_job_claim.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_fold(p_queue integer, p_xid_offset bigint) RETURNS {schema}.job_round
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    round {schema}.job_round;
    own bigint := pg_current_xact_id_if_assigned()::text::bigint;
    seen pg_snapshot;
    open xid8[];
    ends_at bigint;
    folded bigint;
    numbered bigint;
    last_xid xid8;
    last_id bigint;
BEGIN
    SELECT r.* INTO round FROM {schema}.job_round r WHERE r.queue_id = p_queue ORDER BY r.version DESC LIMIT 1;
    IF NOT FOUND THEN
        round := ROW(p_queue, 0, '0', 0, '{}', '0', '{}', 0, 0, NULL, NULL)::{schema}.job_round;
    END IF;

    WITH next AS MATERIALIZED (
        SELECT w.xid, w.job_id, w.group_name, (-w.priority)::smallint AS rank, w.created_at
        FROM {schema}.job_waiting w
        WHERE w.queue_id = p_queue AND w.ready AND w.group_name IS NOT NULL AND (w.xid, w.job_id) > (round.at_xid, round.at_id)
        ORDER BY w.xid, w.job_id LIMIT 10000
    ), due AS MATERIALIZED (
        SELECT n.xid, n.job_id, n.group_name, n.rank, n.created_at FROM next n
        UNION ALL
        SELECT w.xid, w.job_id, w.group_name, (-w.priority)::smallint, w.created_at FROM {schema}.job_waiting w
        WHERE w.queue_id = p_queue AND w.ready AND w.group_name IS NOT NULL AND w.xid = ANY (round.late_xid)
    ), gave AS MATERIALIZED (
        SELECT e.ctid AS spot, e.xid, e.id, e.job_id, e.group_name, e.ended FROM {schema}.job_group_end e
        WHERE e.queue_id = p_queue AND e.xid >= round.ends_xid
        UNION ALL
        SELECT e.ctid, e.xid, e.id, e.job_id, e.group_name, e.ended FROM {schema}.job_group_end e
        WHERE e.queue_id = p_queue AND e.xid = ANY (round.ends_late)
    ), used AS (
        DELETE FROM {schema}.job_group_end e WHERE e.ctid = ANY (ARRAY(SELECT g.spot FROM gave g)) AND e.xmax = '0'
    ), first AS MATERIALIZED (
        SELECT DISTINCT ON (d.group_name) d.group_name, d.xid, d.job_id FROM due d ORDER BY d.group_name, d.xid, d.job_id
    ), lowest AS MATERIALIZED (
        SELECT d.group_name, min(d.rank) AS rank, min(d.created_at) AS created_at FROM due d GROUP BY d.group_name
    ), ended AS MATERIALIZED (
        SELECT g.group_name, sum(g.ended)::integer AS ended FROM gave g GROUP BY g.group_name
    ), change AS MATERIALIZED (
        SELECT n.group_name, f.xid, f.job_id, l.rank, l.created_at, coalesce(e.ended, 0) AS ended, o.spot, o.leftover, o.turn,
            coalesce(o.running, 0) AS was_running, coalesce(o.has_jobs, false) AS had_jobs, coalesce(o.ready, false) AS was_ready,
            o.from_rank, o.from_created_at, o.from_id
        FROM (SELECT f.group_name FROM first f UNION SELECT e.group_name FROM ended e) n
        LEFT JOIN first f ON f.group_name = n.group_name
        LEFT JOIN lowest l ON l.group_name = n.group_name
        LEFT JOIN ended e ON e.group_name = n.group_name
        LEFT JOIN LATERAL (
            -- Without a limit every group is in the round, so no valid version is before it.
            SELECT o.ctid AS spot, o.* FROM {schema}.job_group o
            WHERE o.queue_id = p_queue AND o.group_name = n.group_name
                AND o.version >= CASE WHEN round.group_limit IS NULL THEN round.round_from ELSE 0 END
            ORDER BY o.version DESC LIMIT 1
        ) o ON true
    ), freed AS (
        -- The first transaction whose ends bring a group below its limit.
        SELECT DISTINCT ON (s.group_name) s.group_name, s.xid, s.job_id
        FROM (
            SELECT g.group_name, g.xid, min(g.job_id) AS job_id, min(c.was_running) - sum(sum(g.ended)) OVER (
                PARTITION BY g.group_name ORDER BY g.xid) AS left_running
            FROM gave g JOIN change c ON c.group_name = g.group_name
            WHERE c.was_running >= round.group_limit GROUP BY g.group_name, g.xid
        ) s
        WHERE s.left_running < round.group_limit
        ORDER BY s.group_name, s.xid, s.job_id
    ), after AS MATERIALIZED (
        SELECT c.*, c.had_jobs OR c.job_id IS NOT NULL AS has_jobs, greatest(c.was_running - c.ended, 0) AS running,
            (c.had_jobs OR c.job_id IS NOT NULL)
                AND (round.group_limit IS NULL OR greatest(c.was_running - c.ended, 0) < round.group_limit) AS ready,
            -- The later of the first job, if it had none, and of the end that freed it, if it was at its limit.
            CASE WHEN NOT c.had_jobs AND (f.xid IS NULL OR c.xid > f.xid) THEN c.xid ELSE f.xid END AS join_xid,
            CASE WHEN NOT c.had_jobs AND (f.xid IS NULL OR c.xid > f.xid) THEN 0 ELSE 1 END AS join_kind,
            CASE WHEN NOT c.had_jobs AND (f.xid IS NULL OR c.xid > f.xid) THEN c.job_id ELSE f.job_id END AS join_id,
            c.from_rank IS NULL OR (c.rank, c.created_at) <= (c.from_rank, c.from_created_at) AS is_lower
        FROM change c LEFT JOIN freed f ON f.group_name = c.group_name
    ), changed AS MATERIALIZED (
        SELECT a.*, round.last_number + row_number() OVER (
            ORDER BY NOT (a.ready AND NOT a.was_ready), a.join_xid, a.join_kind, a.join_id, a.group_name) AS number
        FROM after a
        WHERE a.ended <> 0 OR a.has_jobs <> a.had_jobs OR a.ready <> a.was_ready OR coalesce(a.is_lower, false)
    ), gone AS (
        DELETE FROM {schema}.job_group o WHERE o.ctid = ANY (ARRAY(SELECT c.spot FROM changed c)) AND o.xmax = '0' RETURNING o.group_name
    ), put AS (
        INSERT INTO {schema}.job_group (queue_id, group_name, version, turn, from_created_at, from_id, running, from_rank, has_jobs, ready, leftover)
        SELECT p_queue, c.group_name, c.number, CASE WHEN c.ready AND NOT c.was_ready THEN c.number ELSE coalesce(c.turn, 0) END,
            CASE WHEN c.is_lower THEN coalesce(c.created_at, '-infinity') ELSE c.from_created_at END,
            CASE WHEN c.is_lower THEN 0 ELSE c.from_id END, c.running,
            CASE WHEN c.is_lower THEN coalesce(c.rank, -32768) ELSE c.from_rank END, c.has_jobs, c.ready,
            coalesce(c.leftover, false) OR c.spot IS NOT NULL AND g.group_name IS NULL
        FROM changed c LEFT JOIN gone g ON g.group_name = c.group_name
        WHERE c.has_jobs OR c.running > 0 OR c.leftover OR c.spot IS NOT NULL AND g.group_name IS NULL
    )
    SELECT pg_current_snapshot(), (SELECT count(*) FROM next), (SELECT count(*) FROM changed),
        (SELECT n.xid FROM next n ORDER BY n.xid DESC, n.job_id DESC LIMIT 1), (SELECT n.job_id FROM next n ORDER BY n.xid DESC, n.job_id DESC LIMIT 1)
    INTO seen, folded, numbered, last_xid, last_id;

    -- The transaction's own rows are folded, whatever its number; those between the end of the snapshot and it may still be in progress.
    ends_at := greatest(pg_snapshot_xmax(seen)::text::bigint, own + 1);
    SELECT coalesce(array_agg((x.xid + p_xid_offset)::text::xid8), '{}') INTO open FROM (
        SELECT s.xid::text::bigint AS xid FROM pg_snapshot_xip(seen) AS s (xid)
        UNION ALL
        SELECT g.xid FROM generate_series(pg_snapshot_xmax(seen)::text::bigint, own - 1) AS g (xid)
    ) x;
    round.ends_xid := (ends_at + p_xid_offset)::text::xid8;
    round.ends_late := open;
    IF folded < 10000 THEN
        round.at_xid := round.ends_xid;
        round.at_id := 0;
        round.late_xid := open;
    ELSE
        round.at_xid := last_xid;
        round.at_id := last_id;
        round.late_xid := ARRAY(SELECT o.xid FROM unnest(open) AS o (xid) WHERE o.xid < last_xid);
    END IF;
    round.last_number := round.last_number + numbered;
    RETURN round;
END
$$
