-- Returns the quotas of a workspace, and what it uses of them: the folded figures plus the unfolded changes.
SELECT w.max_pending, w.max_open_bytes, greatest(0, t.pending + coalesce(e.pending, 0))::bigint AS pending,
    greatest(0, t.open_bytes + coalesce(e.open_bytes, 0))::bigint AS open_bytes
FROM {schema}.workspace w,
    (SELECT * FROM {schema}.workspace_turn WHERE workspace_id = $1 ORDER BY turn DESC LIMIT 1) t,
    (SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1) f,
    LATERAL (
        SELECT sum(pending)::bigint AS pending, sum(open_bytes)::bigint AS open_bytes
        FROM (
            SELECT (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending, bytes AS open_bytes
            FROM (
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
                UNION ALL
                SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
                WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
            ) fresh
            WHERE workspace_id = $1
            UNION ALL
            SELECT pending, open_bytes FROM (
                SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
                UNION ALL
                SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
            ) delta
            WHERE workspace_id = $1
        ) d
    ) e
WHERE w.id = $1
