-- Inserts a copy of the FAILED request $3. Returns one row if the request exists: its status, whether its definition can still run, and the
-- new id.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), failed AS MATERIALIZED (
    SELECT q.*, EXISTS (
        SELECT 1 FROM workflow_definition d JOIN workspace w ON w.id = d.workspace_id
        WHERE d.id = q.definition_id AND d.deleted_at IS NULL AND w.deleted_at IS NULL) AS alive
    FROM workflow_execution_queue q WHERE q.id = $3 AND q.workspace_id = $2
), inserted AS (
    INSERT INTO workflow_execution_queue
        (id, due, run_at, created_at, redrive_of, live_redrive_of, {request/given})
    SELECT $4, true, clock.now, clock.now, f.id, f.id, {request/given}
    FROM failed f, clock WHERE f.status = 'FAILED' AND f.alive
    ON CONFLICT (live_redrive_of) WHERE live_redrive_of IS NOT NULL DO NOTHING
    RETURNING id, workspace_id, rank, created_at, bytes
), marked AS (
    UPDATE workflow_execution_queue SET redriven = true WHERE id = $3 AND EXISTS (SELECT 1 FROM inserted)
), logged AS (
    INSERT INTO request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, reason, bytes)
    SELECT id, workspace_id, 'PENDING', created_at, rank, created_at, $5, 'redrive', bytes FROM inserted
)
SELECT f.status, f.alive, i.id AS inserted, CASE WHEN i.id IS NOT NULL THEN (SELECT leasehold_notify()) END AS notified
FROM failed f LEFT JOIN inserted i ON true
