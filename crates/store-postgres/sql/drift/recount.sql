-- Recounts the requests of workspace $1 in its turn row, minus the unfolded changes, unless there are $2 or more. The caller must hold the
-- lock of the fold.
UPDATE {schema}.workspace_turn t
SET pending = c.pending - f.pending, claimed = c.claimed - f.claimed, dispatched = c.dispatched - f.dispatched,
    completed = c.completed - f.completed, failed = c.failed - f.failed, open_bytes = c.open_bytes - f.open_bytes, written_by = pg_current_xact_id()
FROM (
    SELECT count(*) FILTER (WHERE status = 'PENDING') AS pending,
        count(*) FILTER (WHERE status = 'CLAIMED') AS claimed,
        count(*) FILTER (WHERE status = 'DISPATCHED') AS dispatched,
        count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
        count(*) FILTER (WHERE status = 'FAILED') AS failed,
        coalesce(sum(bytes + coalesce(execution_bytes, 0)) FILTER (WHERE finished_at IS NULL), 0)::bigint AS open_bytes,
        count(*) AS seen
    FROM (SELECT status, bytes, execution_bytes, finished_at FROM {schema}.workflow_execution_queue WHERE workspace_id = $1 ORDER BY id DESC LIMIT $2) q
) c, (
    SELECT coalesce(sum(pending), 0)::bigint AS pending, coalesce(sum(claimed), 0)::bigint AS claimed,
        coalesce(sum(dispatched), 0)::bigint AS dispatched, coalesce(sum(completed), 0)::bigint AS completed,
        coalesce(sum(failed), 0)::bigint AS failed,
        coalesce(sum(open_bytes), 0)::bigint AS open_bytes
    FROM (
        SELECT (to_status = 'PENDING')::int - (from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
            (to_status = 'CLAIMED')::int - (from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (to_status = 'DISPATCHED')::int - (from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
            (to_status = 'COMPLETED')::int AS completed,
            (to_status = 'FAILED')::int AS failed,
            bytes AS open_bytes
        FROM (SELECT position FROM {schema}.request_fold ORDER BY id DESC LIMIT 1) f CROSS JOIN LATERAL (
            SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT workspace_id, from_status, to_status, bytes FROM {schema}.request_event
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) e
        WHERE e.workspace_id = $1
        UNION ALL
        SELECT d.pending, d.claimed, d.dispatched, d.completed, d.failed, d.open_bytes
        FROM (SELECT position FROM {schema}.request_fold ORDER BY id DESC LIMIT 1) f CROSS JOIN LATERAL (
            SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) d
        WHERE d.workspace_id = $1
    ) d
) f
WHERE t.workspace_id = $1 AND c.seen < $2
