-- Fails a PENDING request without an execution. Records a cancel request for any other open request, and notifies the service that carries
-- it out. Returns the previous state, or one row with is_busy if the request is locked. $5: terminate without asking the workflow.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), target AS MATERIALIZED (
    SELECT id, status, execution_id, status = 'PENDING' AND execution_id IS NULL AS at_once
    FROM {schema}.workflow_execution_queue WHERE id = $3 AND workspace_id = $2 FOR UPDATE SKIP LOCKED
), failed AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = CASE WHEN t.at_once THEN 'FAILED' ELSE q.status END,
        -- A PENDING request with an execution is cancelled when it is claimed, so it becomes due now.
        due = CASE WHEN NOT t.at_once AND t.status = 'PENDING' THEN true END,
        run_at = CASE WHEN NOT t.at_once AND t.status = 'PENDING' THEN least(q.run_at, clock.now) ELSE q.run_at END,
        finished_at = CASE WHEN t.at_once THEN clock.now END,
        failure_reason = CASE WHEN t.at_once THEN 'cancelled' END,
        live_redrive_of = CASE WHEN NOT t.at_once THEN q.live_redrive_of END,
        cancel_requested_at = CASE WHEN NOT t.at_once THEN coalesce(q.cancel_requested_at, clock.now) END,
        cancel_force = NOT t.at_once AND (q.cancel_force OR $5),
        -- Sent to the engine again, also if it acknowledged an earlier one: a workflow that continued as new may have lost that.
        cancel_told_at = NULL
    FROM target t, clock
    WHERE q.id = t.id AND t.status IN ('PENDING', 'CLAIMED', 'DISPATCHED')
    RETURNING q.id, q.workspace_id, q.status, q.cancel_untold, q.bytes + coalesce(q.execution_bytes, 0) AS bytes
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason, bytes)
    SELECT failed.id, failed.workspace_id, 'PENDING', 'FAILED', clock.now, $4, 'cancelled', -failed.bytes
    FROM failed, clock WHERE failed.status = 'FAILED'
)
SELECT t.id IS NULL AS is_busy, t.status, t.execution_id, f.cancel_untold IS NOT NULL AS is_unacknowledged,
    CASE WHEN f.cancel_untold IS NOT NULL THEN pg_notify('leasehold', 'cancel') END AS cancel_notified,
    CASE WHEN f.status = 'PENDING' THEN (SELECT {schema}.leasehold_notify()) END AS work_notified
FROM (SELECT id FROM {schema}.workflow_execution_queue WHERE id = $3 AND workspace_id = $2) q
LEFT JOIN target t ON t.id = q.id LEFT JOIN failed f ON f.id = t.id
