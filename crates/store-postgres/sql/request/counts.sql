-- Returns the folded counts of a workspace plus the unfolded changes.
SELECT (t.pending + coalesce(e.pending, 0))::bigint AS pending, (t.claimed + coalesce(e.claimed, 0))::bigint AS claimed,
    (t.dispatched + coalesce(e.dispatched, 0))::bigint AS dispatched,
    (t.completed + coalesce(e.completed, 0))::bigint AS completed, (t.failed + coalesce(e.failed, 0))::bigint AS failed
FROM (SELECT * FROM {schema}.workspace_turn WHERE workspace_id = $1 ORDER BY turn DESC LIMIT 1) t,
    (SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1) f,
    LATERAL (
        SELECT sum(pending)::bigint AS pending, sum(claimed)::bigint AS claimed, sum(dispatched)::bigint AS dispatched,
            sum(completed)::bigint AS completed, sum(failed)::bigint AS failed
        FROM (
            SELECT (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
                (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
                (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
                (to_status = 'COMPLETED')::int AS completed,
                (to_status = 'FAILED')::int AS failed
            FROM (
                SELECT workspace_id, from_status, to_status FROM {schema}.request_event
                WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
                UNION ALL
                SELECT workspace_id, from_status, to_status FROM {schema}.request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
            ) fresh
            WHERE workspace_id = $1
            UNION ALL
            SELECT pending, claimed, dispatched, completed, failed FROM (
                SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
                UNION ALL
                SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
            ) delta
            WHERE workspace_id = $1
        ) d
    ) e
