-- Reads since when the oldest PENDING request has been due.
WITH RECURSIVE lane (workspace_id, priority) AS (
    -- Each priority with due requests, in each workspace.
    SELECT t.workspace_id, (
        SELECT q.priority FROM workflow_execution_queue q INDEXED BY request_line
        WHERE q.workspace_id = t.workspace_id AND q.due = 1 AND q.execution_id IS NULL
        ORDER BY q.priority DESC LIMIT 1)
    FROM workspace_turn t WHERE t.pending > 0
    UNION ALL
    SELECT l.workspace_id, (
        SELECT q.priority FROM workflow_execution_queue q INDEXED BY request_line
        WHERE q.workspace_id = l.workspace_id AND q.due = 1 AND q.execution_id IS NULL AND q.priority < l.priority
        ORDER BY q.priority DESC LIMIT 1)
    FROM lane l WHERE l.priority IS NOT NULL
), first AS MATERIALIZED (
    SELECT l.workspace_id, l.priority, q.created_at, max(q.run_at, q.created_at) AS since
    FROM lane l CROSS JOIN workflow_execution_queue q ON q.id = (
        SELECT f.id FROM workflow_execution_queue f INDEXED BY request_line
        WHERE f.workspace_id = l.workspace_id AND f.priority = l.priority AND f.due = 1 AND f.execution_id IS NULL
        ORDER BY f.created_at, f.id LIMIT 1)
    WHERE l.priority IS NOT NULL
), waits AS MATERIALIZED (
    SELECT min(since) AS since FROM (
        SELECT since FROM first
        UNION ALL
        SELECT max(run_at, created_at) FROM workflow_execution_queue INDEXED BY request_kept
        WHERE due = 1 AND execution_id IS NOT NULL
        UNION ALL
        SELECT * FROM (
            SELECT max(run_at, created_at) FROM workflow_execution_queue INDEXED BY request_not_due
            WHERE due = 0 AND run_at <= ?1 ORDER BY run_at LIMIT 1)
    )
), behind AS MATERIALIZED (
    SELECT f.*, w.since AS until FROM first f, waits w WHERE f.created_at < w.since ORDER BY f.created_at LIMIT 200
), part (n) AS (
    VALUES (1), (2), (3), (4), (5), (6), (7)
)
SELECT min(since) AS since FROM (
    SELECT since FROM waits
    UNION ALL
    -- The line is in enqueue order, so a request behind delayed ones may have been due for longer. The first hundred are read
    -- one by one; beyond them, one sample in each eighth of the time range.
    SELECT (
        SELECT min(since) FROM (
            SELECT max(q.run_at, q.created_at) AS since FROM workflow_execution_queue q INDEXED BY request_line
            WHERE q.workspace_id = b.workspace_id AND q.priority = b.priority AND q.due = 1 AND q.execution_id IS NULL
            ORDER BY q.created_at, q.id LIMIT 101))
    FROM behind b
    UNION ALL
    SELECT (
        SELECT max(q.run_at, q.created_at) FROM workflow_execution_queue q INDEXED BY request_line
        WHERE q.workspace_id = b.workspace_id AND q.priority = b.priority AND q.due = 1 AND q.execution_id IS NULL
            AND q.created_at >= b.created_at + (b.until - b.created_at) * p.n / 8
        ORDER BY q.created_at, q.id LIMIT 1)
    FROM behind b CROSS JOIN part p
)
