-- Returns the times of the oldest PENDING and due, CLAIMED and DISPATCHED requests, and of the oldest due request whose workspace has a free slot.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), turn AS MATERIALIZED (
    SELECT workspace_id, ready, has_work, dispatched > 0 AS has_dispatched, line_rank, line_at, line_id, oldest_admission, stragglers
    -- TABLESAMPLE of 100 % reads the table page by page; sessions have sequential scans switched off.
    FROM {schema}.workspace_turn TABLESAMPLE SYSTEM (100) WHERE has_work OR dispatched > 0
), lane AS (
    -- The first in line of each workspace and priority.
    SELECT t.workspace_id, t.ready AS startable, f.* FROM turn t CROSS JOIN LATERAL (
        SELECT q.rank, q.created_at, q.id, q.run_at FROM {schema}.workflow_execution_queue q
        WHERE t.has_work AND q.workspace_id = t.workspace_id AND q.due AND q.execution_id IS NULL
            AND (q.rank, q.created_at, q.id) >= (t.line_rank, t.line_at, t.line_id)
        ORDER BY q.rank, q.created_at, q.id LIMIT 1
    ) f
    UNION ALL
    SELECT l.workspace_id, false, n.* FROM lane l CROSS JOIN LATERAL (
        SELECT q.rank, q.created_at, q.id, q.run_at FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = l.workspace_id AND q.due AND q.execution_id IS NULL AND q.rank > l.rank
        ORDER BY q.rank, q.created_at, q.id LIMIT 1
    ) n
), waits AS MATERIALIZED (
    SELECT min(greatest(run_at, created_at)) AS since FROM (
        SELECT run_at, created_at FROM lane
        UNION ALL
        SELECT run_at, created_at FROM {schema}.workflow_execution_queue WHERE due AND execution_id IS NOT NULL
        UNION ALL
        (SELECT run_at, created_at FROM {schema}.workflow_execution_queue
        WHERE NOT due AND run_at <= (SELECT now FROM clock) ORDER BY run_at LIMIT 1)
    ) w
), behind AS (
    -- The line is in order of enqueueing, so a delayed request may stand before one that has been due for longer. Checks the first 100
    -- one by one, and beyond them one request in each eighth of the time span.
    SELECT min(greatest(b.run_at, b.created_at)) AS since
    FROM (
        SELECT l.*, w.since AS until FROM lane l, waits w WHERE l.created_at < w.since ORDER BY l.created_at LIMIT 200
    ) l CROSS JOIN LATERAL (
        (SELECT q.run_at, q.created_at FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = l.workspace_id AND q.due AND q.execution_id IS NULL AND q.rank = l.rank
            AND (q.created_at, q.id) > (l.created_at, l.id) AND q.created_at < l.until
        ORDER BY q.created_at, q.id LIMIT 100)
        UNION ALL
        SELECT p.* FROM generate_series(1, 7) AS part CROSS JOIN LATERAL (
            SELECT q.run_at, q.created_at FROM {schema}.workflow_execution_queue q
            WHERE q.workspace_id = l.workspace_id AND q.due AND q.execution_id IS NULL AND q.rank = l.rank
                AND q.created_at >= l.created_at + (l.until - l.created_at) * (part::double precision / 8.0::double precision) AND q.created_at < l.until
            ORDER BY q.created_at, q.id LIMIT 1
        ) p
    ) b
), first AS MATERIALIZED (
    -- The DISPATCHED request of each workspace that was admitted first, and a lower bound for the dispatch times.
    SELECT t.workspace_id, t.oldest_admission, t.stragglers, f.*
    FROM turn t CROSS JOIN LATERAL (
        SELECT q.dispatched_at, CASE WHEN q.attempt_count = 0 THEN e.started_at ELSE q.created_at END AS not_before
        FROM (
            SELECT e.* FROM unnest(t.stragglers) AS s (admission) CROSS JOIN LATERAL (
                SELECT e.id, e.request_id, e.started_at FROM {schema}.workflow_execution e
                WHERE e.workspace_id = t.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission LIMIT 1
            ) e
            UNION ALL
            (SELECT e.id, e.request_id, e.started_at FROM {schema}.workflow_execution e
            WHERE e.workspace_id = t.workspace_id AND e.status = 'RUNNING' AND e.admission >= t.oldest_admission
            ORDER BY e.admission)
        ) e CROSS JOIN LATERAL (
            SELECT q.* FROM {schema}.workflow_execution_queue q WHERE q.id = e.request_id AND q.status = 'DISPATCHED' LIMIT 1
        ) q
        LIMIT 1
    ) f
    WHERE t.has_dispatched
), runs AS MATERIALIZED (
    SELECT min(dispatched_at) AS since FROM first
), others AS (
    -- If the first took long to start or was started again, another may have been dispatched before it. Accepts an error of one second
    -- to avoid the scan.
    SELECT min(b.dispatched_at) AS since FROM (
        SELECT q.dispatched_at
        FROM (
            SELECT f.* FROM first f, runs WHERE f.not_before <= runs.since - interval '1 second' ORDER BY f.not_before
        ) f CROSS JOIN LATERAL (
            SELECT q.dispatched_at FROM (
                SELECT e.* FROM unnest(f.stragglers) AS s (admission) CROSS JOIN LATERAL (
                    SELECT e.request_id FROM {schema}.workflow_execution e
                    WHERE e.workspace_id = f.workspace_id AND e.status = 'RUNNING' AND e.admission = s.admission LIMIT 1
                ) e
                UNION ALL
                (SELECT e.request_id FROM {schema}.workflow_execution e
                WHERE e.workspace_id = f.workspace_id AND e.status = 'RUNNING' AND e.admission >= f.oldest_admission
                ORDER BY e.admission)
            ) e CROSS JOIN LATERAL (
                SELECT q.dispatched_at FROM {schema}.workflow_execution_queue q
                WHERE q.id = e.request_id AND q.status = 'DISPATCHED' LIMIT 1
            ) q
            LIMIT 100
        ) q
        LIMIT 2000
    ) b
)
SELECT clock.now AS at, least(waits.since, behind.since) AS pending,
    (SELECT min(greatest(run_at, created_at)) FROM lane WHERE startable) AS startable,
    (SELECT min(claimed_at) FROM {schema}.workflow_execution_queue WHERE lease_expires_at IS NOT NULL) AS claimed,
    least(runs.since, others.since) AS dispatched
FROM clock, waits, behind, runs, others
