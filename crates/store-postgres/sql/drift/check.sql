-- Returns the drift in workspace $1 as of one snapshot: one row for each, at most $2. Searches the newest $3 requests for those without a
-- RUNNING execution.
WITH folded AS MATERIALIZED (
    SELECT position, events_from FROM {schema}.request_fold ORDER BY id DESC LIMIT 1
), fresh AS MATERIALIZED (
    SELECT coalesce(bool_or(room), false) AS room, coalesce(sum(claimed), 0)::bigint AS claimed,
        coalesce(sum(dispatched), 0)::bigint AS dispatched
    FROM (
        SELECT e.from_status IN ('CLAIMED', 'DISPATCHED') AND e.to_status <> 'DISPATCHED' AS room,
            (e.to_status = 'CLAIMED')::int - (e.from_status IS NOT DISTINCT FROM 'CLAIMED')::int AS claimed,
            (e.to_status = 'DISPATCHED')::int - (e.from_status IS NOT DISTINCT FROM 'DISPATCHED')::int AS dispatched
        FROM folded f CROSS JOIN LATERAL (
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event WHERE xid >= pg_snapshot_xmax(f.position) AND id >= f.events_from
            UNION ALL
            SELECT workspace_id, from_status, to_status FROM {schema}.request_event
            WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position))) AND id >= f.events_from
        ) e
        WHERE e.workspace_id = $1
        UNION ALL
        SELECT d.room OR d.anew, d.claimed, d.dispatched FROM folded f CROSS JOIN LATERAL (
            SELECT * FROM {schema}.workspace_delta WHERE xid >= pg_snapshot_xmax(f.position)
            UNION ALL
            SELECT * FROM {schema}.workspace_delta WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(f.position)))
        ) d
        WHERE d.workspace_id = $1
    ) d
), turn AS MATERIALIZED (
    SELECT * FROM {schema}.workspace_turn WHERE workspace_id = $1 ORDER BY turn DESC LIMIT 1
), running AS MATERIALIZED (
    SELECT e.id, e.request_id, e.admission, q.status, q.execution_id,
        coalesce(q.execution_id = e.id AND q.status IN ('PENDING', 'CLAIMED', 'DISPATCHED'), false) AS wanted
    FROM {schema}.workflow_execution e LEFT JOIN LATERAL (
        SELECT execution_id, status FROM {schema}.workflow_execution_queue WHERE id = e.request_id LIMIT 1
    ) q ON true
    WHERE e.workspace_id = $1 AND e.status = 'RUNNING'
), counted AS MATERIALIZED (
    SELECT count(*) AS running, count(*) FILTER (WHERE wanted AND status = 'CLAIMED') AS claimed,
        count(*) FILTER (WHERE wanted AND status = 'DISPATCHED') AS dispatched
    FROM running
), kept AS MATERIALIZED (
    SELECT t.claimed + f.claimed AS claimed, t.dispatched + f.dispatched AS dispatched FROM turn t, fresh f
), stray AS MATERIALIZED (
    SELECT q.id, q.status, q.execution_id
    FROM (
        SELECT id, status, execution_id FROM {schema}.workflow_execution_queue WHERE workspace_id = $1
            AND (SELECT k.claimed <> c.claimed OR k.dispatched <> c.dispatched FROM kept k, counted c)
        ORDER BY id DESC LIMIT $3
    ) q
    WHERE q.status IN ('CLAIMED', 'DISPATCHED') AND NOT EXISTS (
        SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = q.execution_id AND e.status = 'RUNNING')
), strays AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE status = 'CLAIMED') AS claimed,
        count(*) FILTER (WHERE status = 'DISPATCHED') AS dispatched
    FROM stray
)
SELECT kind, request_id, execution_id, detail
FROM (
    SELECT 1 AS part, 'limit' AS kind, NULL::uuid AS request_id, NULL::uuid AS execution_id, CASE WHEN t.workspace_id IS NULL
        THEN 'the workspace has no workspace_turn row, so claims skip it'
        ELSE format('claims apply the limit %s%s%s, but the workspace has %s%s%s', t.concurrency_limit,
            CASE WHEN t.paused THEN ', paused' END, CASE WHEN t.deleted THEN ', deleted' END, w.concurrency_limit,
            CASE WHEN w.paused THEN ', paused' END, CASE WHEN w.deleted_at IS NOT NULL THEN ', deleted' END) END AS detail
    FROM {schema}.workspace w LEFT JOIN turn t ON true
    WHERE w.id = $1 AND coalesce(t.concurrency_limit <> w.concurrency_limit OR t.paused <> w.paused
        OR t.deleted <> (w.deleted_at IS NOT NULL), true)
    UNION ALL
    SELECT 2, 'slot_without_execution', NULL, NULL,
        format('recorded as having no free slot, but %s of %s slots are in use', c.running, t.concurrency_limit)
    FROM turn t, counted c, fresh f
    WHERE NOT t.has_room AND c.running < t.concurrency_limit AND NOT f.room
    UNION ALL
    SELECT 3, 'execution_without_slot', NULL, NULL,
        format('recorded at most %s RUNNING executions, found %s', t.held_at_most, c.running)
    FROM turn t, counted c WHERE t.held_at_most < c.running
    UNION ALL
    SELECT 4, 'execution_without_slot', e.request_id, e.id, 'RUNNING, but not counted: older than oldest_admission in workspace_turn'
    FROM turn t, running e WHERE e.admission < t.oldest_admission AND NOT (e.admission = ANY (t.stragglers))
    UNION ALL
    SELECT 5, 'slot_without_execution', request_id, id, CASE
        WHEN status IS NULL THEN 'RUNNING, but its request is missing'
        WHEN execution_id IS DISTINCT FROM id THEN format('RUNNING, but its request is %s with another execution', status)
        ELSE format('RUNNING, but its request is %s', status) END
    FROM running WHERE NOT wanted
    UNION ALL
    -- Listed first, so that the repair takes the slot back before another request gets it.
    SELECT 0, 'request_without_execution', s.id, s.execution_id, format('%s, but its execution is %s', s.status,
        coalesce((SELECT e.status FROM {schema}.workflow_execution e WHERE e.id = s.execution_id), 'missing'))
    FROM stray s
    UNION ALL
    SELECT 7, 'counts', NULL, NULL, format('recorded %s CLAIMED and %s DISPATCHED requests, found %s and %s',
        k.claimed, k.dispatched, c.claimed + s.claimed, c.dispatched + s.dispatched)
    FROM kept k, counted c, strays s
    WHERE k.claimed <> c.claimed + s.claimed OR k.dispatched <> c.dispatched + s.dispatched
) d
ORDER BY part, execution_id LIMIT $2
