-- Ends RUNNING executions whose requests are DISPATCHED, together with those requests. Returns what ended. Skips those whose request or
-- execution is locked.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), held AS MATERIALIZED (
    SELECT e.id, q.id AS request_id, a.execution_status, a.request_status, a.error,
        CASE WHEN a.reason = 'terminated' AND q.crashes_alone >= $8::integer THEN 'poisoned'
            WHEN a.reason = 'terminated' AND q.cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE a.reason END AS reason
    FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[])
        AS a (id, execution_status, request_status, reason, error)
    JOIN {schema}.workflow_execution e ON e.id = a.id
    JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
    WHERE e.finished_at IS NULL AND q.execution_id = e.id AND q.status = 'DISPATCHED'
    ORDER BY q.id FOR UPDATE OF q, e SKIP LOCKED
), ended AS (
    UPDATE {schema}.workflow_execution e
    SET status = h.execution_status, finished_at = clock.now, error = h.error
    FROM held h, clock WHERE e.id = h.id
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = h.request_status, finished_at = clock.now, failure_reason = h.reason, live_redrive_of = NULL,
        attempt_count = q.attempt_count + (h.reason IS NOT NULL)::integer,
        last_error = coalesce(h.error, q.last_error)
    FROM held h, clock WHERE q.id = h.request_id
    RETURNING q.id, q.workspace_id, q.execution_id, q.status, q.failure_reason,
        q.bytes + coalesce(q.execution_bytes, 0) AS bytes
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason, bytes)
    SELECT m.id, m.workspace_id, 'DISPATCHED', m.status, clock.now, $2, m.failure_reason, -m.bytes FROM moved m, clock
)
SELECT execution_id, id, status, failure_reason, (SELECT {schema}.leasehold_notify()) AS notified FROM moved
