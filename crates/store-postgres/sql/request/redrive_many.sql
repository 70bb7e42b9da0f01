-- Redrives up to $4 FAILED requests of a workspace that were never redriven, with the new ids $5; optionally of one reason or
-- definition. Stops when they have $8 bytes; the first request is redriven even if it has more.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), failed AS MATERIALIZED (
    SELECT f.*, row_number() OVER (ORDER BY f.id) AS ordinal
    FROM (
        SELECT q.id, {request/given}
        FROM {schema}.workflow_execution_queue q
        WHERE q.workspace_id = $2 AND q.failure_reason IS NOT NULL AND ($3::text IS NULL OR q.failure_reason = $3)
            AND ($7::uuid IS NULL OR q.definition_id = $7)
            AND NOT q.redriven
            AND EXISTS (
                SELECT 1 FROM {schema}.workflow_definition d JOIN {schema}.workspace w ON w.id = d.workspace_id
                WHERE d.id = q.definition_id AND d.deleted_at IS NULL AND w.deleted_at IS NULL)
        ORDER BY q.id LIMIT $4
        FOR UPDATE SKIP LOCKED
    ) f
), fitting AS (
    SELECT *, sum(bytes) OVER (ORDER BY ordinal) - bytes AS before FROM failed
), inserted AS (
    INSERT INTO {schema}.workflow_execution_queue
        (id, due, run_at, created_at, redrive_of, live_redrive_of, {request/given})
    SELECT ($5::uuid[])[f.ordinal], true, clock.now, clock.now, f.id, f.id, {request/given}
    FROM fitting f, clock WHERE f.before < $8 ORDER BY f.ordinal
    ON CONFLICT (live_redrive_of) WHERE live_redrive_of IS NOT NULL DO NOTHING
    RETURNING id, workspace_id, rank, created_at, bytes, redrive_of
), marked AS (
    UPDATE {schema}.workflow_execution_queue SET redriven = true WHERE id = ANY (ARRAY(SELECT redrive_of FROM inserted))
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, reason, bytes)
    SELECT id, workspace_id, 'PENDING', created_at, rank, created_at, $6, 'redrive', bytes FROM inserted
)
SELECT redrive_of, id, (SELECT {schema}.leasehold_notify()) AS notified FROM inserted ORDER BY redrive_of
