-- Inserts a copy of the FAILED request $3. Returns one row if the request exists: its status, whether its definition can still run, whether its
-- row is locked, and the new id. Locks the failed request before it inserts, like request/redrive_many.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), found AS MATERIALIZED (
    SELECT q.status, EXISTS (
        SELECT 1 FROM {schema}.workflow_definition d JOIN {schema}.workspace w ON w.id = d.workspace_id
        WHERE d.id = q.definition_id AND d.deleted_at IS NULL AND w.deleted_at IS NULL) AS alive
    FROM {schema}.workflow_execution_queue q WHERE q.id = $3 AND q.workspace_id = $2
), failed AS MATERIALIZED (
    SELECT q.* FROM {schema}.workflow_execution_queue q
    WHERE q.id = $3 AND q.workspace_id = $2 AND q.status = 'FAILED' AND (SELECT f.alive FROM found f)
    FOR UPDATE SKIP LOCKED
), inserted AS (
    INSERT INTO {schema}.workflow_execution_queue
        (id, due, run_at, created_at, redrive_of, live_redrive_of, {request/given})
    SELECT $4, true, clock.now, clock.now, f.id, f.id, {request/given}
    FROM failed f, clock
    ON CONFLICT (live_redrive_of) WHERE live_redrive_of IS NOT NULL DO NOTHING
    RETURNING id, workspace_id, rank, created_at, bytes
), marked AS (
    UPDATE {schema}.workflow_execution_queue SET redriven = true WHERE id = $3 AND EXISTS (SELECT 1 FROM inserted)
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, reason, bytes)
    SELECT id, workspace_id, 'PENDING', created_at, rank, created_at, $5, 'redrive', bytes FROM inserted
)
SELECT f.status, f.alive, NOT EXISTS (SELECT 1 FROM failed) AS is_busy, i.id AS inserted,
    CASE WHEN i.id IS NOT NULL THEN (SELECT {schema}.leasehold_notify()) END AS notified
FROM found f LEFT JOIN inserted i ON true
