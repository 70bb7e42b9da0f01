-- CLAIMED → PENDING for up to $3 requests whose lease expired after $4; they keep their executions. Returns one row without a request if there
-- is none.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), stale AS MATERIALIZED (
    SELECT id FROM {schema}.workflow_execution_queue
    WHERE lease_expires_at > coalesce($4::timestamptz, '-infinity') AND lease_expires_at <= (SELECT now FROM clock)
    ORDER BY lease_expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = 'PENDING', due = true, attempt_count = q.attempt_count + 1, claimed_at = NULL, claimed_by = NULL,
        lease_expires_at = NULL
    FROM stale WHERE q.id = stale.id AND q.status = 'CLAIMED'
    RETURNING q.id, q.workspace_id, q.execution_id
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom, reason)
    SELECT moved.id, moved.workspace_id, 'CLAIMED', 'PENDING', clock.now, $2, 'lease_expired' FROM moved, clock
)
SELECT clock.now, m.id, m.workspace_id, m.execution_id, CASE WHEN m.id IS NOT NULL THEN (SELECT {schema}.leasehold_notify()) END AS notified
FROM clock LEFT JOIN moved m ON true
