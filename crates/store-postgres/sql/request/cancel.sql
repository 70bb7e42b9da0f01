-- Fails a request that waits without an execution; keeps the wish for any other open one. Returns what it was before.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), target AS MATERIALIZED (
    SELECT id, status, execution_id, status = 'PENDING' AND execution_id IS NULL AS at_once
    FROM workflow_execution_queue WHERE id = $3 AND workspace_id = $2 FOR UPDATE
), failed AS (
    UPDATE workflow_execution_queue q
    SET status = CASE WHEN t.at_once THEN 'FAILED' ELSE q.status END,
        due = CASE WHEN NOT t.at_once THEN q.due END,
        finished_at = CASE WHEN t.at_once THEN clock.now END,
        failure_reason = CASE WHEN t.at_once THEN 'cancelled' END,
        live_redrive_of = CASE WHEN NOT t.at_once THEN q.live_redrive_of END,
        cancel_requested_at = CASE WHEN t.at_once THEN NULL ELSE coalesce(q.cancel_requested_at, clock.now) END
    FROM target t, clock
    WHERE q.id = t.id AND t.status IN ('PENDING', 'CLAIMED', 'DISPATCHED')
    RETURNING q.id, q.workspace_id, q.status
), logged AS (
    INSERT INTO request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason)
    SELECT failed.id, failed.workspace_id, 'PENDING', 'FAILED', clock.now, $4, 'cancelled'
    FROM failed, clock WHERE failed.status = 'FAILED'
)
SELECT status, execution_id FROM target
