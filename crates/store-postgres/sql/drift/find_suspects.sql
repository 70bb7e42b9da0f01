-- Returns a page of $2 workspaces after $1, and for each whether slots, executions, requests and turn row disagree.
WITH folded AS MATERIALIZED (
    SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1
), fresh AS MATERIALIZED (
    SELECT workspace_id, bool_or(room) AS room, sum(claimed)::bigint AS claimed, sum(dispatched)::bigint AS dispatched
    FROM (
        SELECT e.workspace_id, e.from_status IN ('CLAIMED', 'DISPATCHED') AND e.to_status <> 'DISPATCHED' AS room,
            (e.to_status = 'CLAIMED')::int - (e.from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (e.to_status = 'DISPATCHED')::int - (e.from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched
        FROM folded f CROSS JOIN LATERAL (
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
            UNION ALL
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
        ) e
        UNION ALL
        SELECT d.workspace_id, d.room OR d.anew, d.claimed, d.dispatched FROM folded f CROSS JOIN LATERAL (
            SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) d
    ) d
    GROUP BY workspace_id
), page AS MATERIALIZED (
    SELECT id, concurrency_limit, paused, deleted_at FROM {schema}.workspace
    WHERE id > coalesce($1, '00000000-0000-0000-0000-000000000000'::uuid) ORDER BY id LIMIT $2
)
SELECT w.id, coalesce(
    t.concurrency_limit <> w.concurrency_limit OR t.paused <> w.paused OR t.deleted <> (w.deleted_at IS NOT NULL)
    OR t.held_at_most < r.running OR r.hidden > 0 OR r.forgotten > 0
    OR (r.running < t.concurrency_limit AND NOT t.has_room AND NOT coalesce(f.room, false))
    OR t.claimed + coalesce(f.claimed, 0) <> r.claimed
    OR t.dispatched + coalesce(f.dispatched, 0) <> r.dispatched, true) AS suspect
FROM page w
LEFT JOIN LATERAL (
    SELECT * FROM {schema}.workspace_turn WHERE workspace_id = w.id ORDER BY turn DESC LIMIT 1
) t ON true
LEFT JOIN fresh f ON f.workspace_id = w.id
CROSS JOIN LATERAL (
    SELECT count(*) AS running,
        count(*) FILTER (WHERE e.admission < t.oldest_admission AND NOT (e.admission = ANY (t.stragglers))) AS hidden,
        count(*) FILTER (WHERE NOT coalesce(q.execution_id = e.id
            AND q.status IN ('PENDING', 'CLAIMED', 'DISPATCHED'), false)) AS forgotten,
        count(*) FILTER (WHERE q.execution_id = e.id AND q.status = 'CLAIMED') AS claimed,
        count(*) FILTER (WHERE q.execution_id = e.id AND q.status = 'DISPATCHED') AS dispatched
    FROM {schema}.workflow_execution e LEFT JOIN LATERAL (
        SELECT execution_id, status FROM {schema}.workflow_execution_queue WHERE id = e.request_id LIMIT 1
    ) q ON true
    WHERE e.workspace_id = w.id AND e.status = 'RUNNING'
) r
ORDER BY w.id
