-- Continues the event log of another cluster with a partition of its own, so that nothing compares the transaction numbers of older events again; for leasehold_epoch_open.
-- release: 1
-- Rewrites no event, and reads only those that are not folded: their changes become one delta for each workspace, with a number of this cluster. To find
-- them it compares stored numbers with each other. Everything before the new partition then counts as folded and sealed. Returns the first id of
-- the new partition.
-- A target of logical replication has rows in tables that are not attached, and neither sequences nor the latest marks of the source.
CREATE OR REPLACE FUNCTION {schema}.leasehold_event_adopt() RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    last {schema}.request_fold;
    first_kept bigint;
    adopting bigint;
    part record;
    has_rows boolean;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332201::bigint);
    PERFORM pg_advisory_xact_lock(7308332186::bigint);
    SELECT * INTO last FROM {schema}.request_fold ORDER BY id DESC LIMIT 1;
    SELECT min(p.number), greatest(max(p.number), last.events_from >> 40, (SELECT s.last_value >> 40 FROM {schema}.request_event_id_seq s),
        (SELECT max(e.mark_event_id) >> 40 FROM {schema}.epoch e))
    INTO first_kept, adopting FROM {schema}.event_partition p;
    -- The sequence may have reached a partition that is not listed yet.
    FOR part IN
        SELECT substr(c.relname::text, 15)::bigint AS number FROM pg_class c
        WHERE c.relnamespace = '{schema}'::regnamespace::oid AND c.relkind = 'r' AND c.relname::text ~ '^request_event_[0-9]+$'::text
            AND substr(c.relname::text, 15)::bigint > adopting
        ORDER BY number DESC
    LOOP
        EXECUTE pg_catalog.format('SELECT EXISTS (SELECT FROM {schema}.request_event_%s)'::text, part.number) INTO has_rows;
        IF has_rows THEN
            adopting := part.number;
            EXIT;
        END IF;
    END LOOP;
    adopting := adopting + 1::bigint;
    UPDATE {schema}.event_partition SET sealed = '3', writers = '{}';
    INSERT INTO {schema}.event_partition (number, begun_at, sealed, writers) VALUES (adopting, clock_timestamp(), '3', '{}');
    IF EXISTS (
        SELECT FROM generate_series(first_kept, adopting) AS n (number)
        WHERE NOT EXISTS (SELECT FROM pg_inherits i
            WHERE i.inhrelid = pg_catalog.to_regclass('{schema}.request_event_'::text || n.number::text)::oid))
    THEN
        PERFORM {schema}.leasehold_event_tables();
    END IF;
    PERFORM setval('{schema}.request_event_id_seq'::regclass, adopting << 40);

    WITH fresh AS (
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes FROM {schema}.request_event
        WHERE xid >= pg_snapshot_xmax(last.position) AND id >= last.events_from
        UNION ALL
        SELECT workspace_id, from_status, to_status, rank, line_at, bytes FROM {schema}.request_event
        WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AND id >= last.events_from
    ), removed AS (
        DELETE FROM {schema}.workspace_delta d
        RETURNING d.*, d.xid >= pg_snapshot_xmax(last.position) OR d.xid = ANY (ARRAY(SELECT pg_snapshot_xip(last.position))) AS is_fresh
    )
    INSERT INTO {schema}.workspace_delta
        (workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes)
    SELECT workspace_id, bool_or(anew), coalesce(bool_or(room), false), min(rank), min(line_at), sum(pending)::bigint, sum(claimed)::bigint,
        sum(dispatched)::bigint, sum(completed)::bigint, sum(failed)::bigint, coalesce(sum(open_bytes), 0)::bigint
    FROM (
        SELECT workspace_id, false AS anew, from_status IN ('CLAIMED', 'DISPATCHED') AND to_status <> 'DISPATCHED' AS room, rank, line_at,
            (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
            (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
            (to_status = 'COMPLETED')::int AS completed, (to_status = 'FAILED')::int AS failed, bytes AS open_bytes
        FROM fresh
        UNION ALL
        SELECT workspace_id, anew, room, rank, line_at, pending, claimed, dispatched, completed, failed, open_bytes
        FROM removed WHERE is_fresh
    ) e
    GROUP BY workspace_id;

    INSERT INTO {schema}.request_fold (position, folded_at, round_from, events_from)
    SELECT {schema}.leasehold_hide_self(pg_current_snapshot()), coalesce(last.folded_at, clock_timestamp()), coalesce(last.round_from, 0::bigint),
        adopting << 40;
    DELETE FROM {schema}.request_fold WHERE id <= last.id AND xmax = '0';
    RETURN adopting << 40;
END
$$
