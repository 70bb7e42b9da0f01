-- Returns the number of workspaces and requests, and the $2 busiest workspaces: folded counts plus the unfolded changes.
WITH folded AS MATERIALIZED (
    SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1
), fresh AS MATERIALIZED (
    SELECT workspace_id, sum(pending)::bigint AS pending, sum(claimed)::bigint AS claimed,
        sum(dispatched)::bigint AS dispatched, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed
    FROM (
        SELECT e.workspace_id,
            (e.to_status = 'PENDING')::int - (e.from_status IS NOT DISTINCT FROM 'PENDING')::int AS pending,
            (e.to_status = 'CLAIMED')::int - (e.from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (e.to_status = 'DISPATCHED')::int - (e.from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched,
            (e.to_status = 'COMPLETED')::int AS completed,
            (e.to_status = 'FAILED')::int AS failed
        FROM folded f CROSS JOIN LATERAL (
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
            UNION ALL
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
        ) e
        UNION ALL
        SELECT d.workspace_id, d.pending, d.claimed, d.dispatched, d.completed, d.failed FROM folded f CROSS JOIN LATERAL (
            SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) d
    ) d
    GROUP BY workspace_id
), counted AS NOT MATERIALIZED (
    SELECT t.workspace_id, t.concurrency_limit, t.oldest_admission, t.stragglers,
        t.pending + coalesce(f.pending, 0) AS pending, t.claimed + coalesce(f.claimed, 0) AS claimed,
        t.dispatched + coalesce(f.dispatched, 0) AS dispatched, t.completed + coalesce(f.completed, 0) AS completed,
        t.failed + coalesce(f.failed, 0) AS failed
    -- TABLESAMPLE of 100 % reads the table page by page; sessions have sequential scans switched off.
    FROM {schema}.workspace_turn t TABLESAMPLE SYSTEM (100) LEFT JOIN fresh f ON f.workspace_id = t.workspace_id
    WHERE NOT t.deleted
), total AS (
    SELECT count(*) AS workspaces, coalesce(sum(pending), 0)::bigint AS all_pending,
        coalesce(sum(claimed), 0)::bigint AS all_claimed, coalesce(sum(dispatched), 0)::bigint AS all_dispatched,
        coalesce(sum(completed), 0)::bigint AS all_completed, coalesce(sum(failed), 0)::bigint AS all_failed
    FROM counted
), busiest AS MATERIALIZED (
    SELECT * FROM counted ORDER BY claimed + dispatched DESC, pending DESC, workspace_id LIMIT $2
)
SELECT coalesce($1::timestamptz, statement_timestamp()) AS at,
    total.workspaces, total.all_pending, total.all_claimed, total.all_dispatched, total.all_completed, total.all_failed,
    b.id IS NOT NULL AS shown, b.id, b.name, b.plan, b.limit_override, b.max_pending_override, b.max_open_bytes_override, b.paused,
    b.created_at, b.deleted_at, b.pending, b.claimed, b.dispatched, b.completed, b.failed, b.concurrency_limit, b.in_use
FROM total LEFT JOIN LATERAL (
    SELECT w.id, w.name, w.plan, w.limit_override, w.max_pending_override, w.max_open_bytes_override, w.paused, w.created_at, w.deleted_at,
        c.pending, c.claimed, c.dispatched, c.completed, c.failed, c.concurrency_limit,
        {schema}.leasehold_count_running(c.workspace_id, c.oldest_admission, c.stragglers) AS in_use
    -- LATERAL, one by one: a join might read every workspace.
    FROM busiest c CROSS JOIN LATERAL (SELECT * FROM {schema}.workspace WHERE id = c.workspace_id LIMIT 1) w
) b ON true
ORDER BY b.claimed + b.dispatched DESC, b.pending DESC, b.name COLLATE "C"
