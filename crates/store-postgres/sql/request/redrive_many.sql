-- Redrives those of the requests $3 of workspace $2 that can be redriven and that no other transaction has locked, with the new ids $4.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), failed AS MATERIALIZED (
    SELECT n.id AS new_id, n.ordinal, q.*
    FROM unnest($3::uuid[], $4::uuid[]) WITH ORDINALITY AS n (failed, id, ordinal) CROSS JOIN LATERAL (
        SELECT q.id, {request/given}
        FROM {schema}.workflow_execution_queue q
        WHERE q.id = n.failed AND q.workspace_id = $2 AND q.failure_reason IS NOT NULL AND NOT q.redriven
            AND EXISTS (
                SELECT 1 FROM {schema}.workflow_definition d JOIN {schema}.workspace w ON w.id = d.workspace_id
                WHERE d.id = q.definition_id AND d.deleted_at IS NULL AND w.deleted_at IS NULL)
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) q
), inserted AS (
    INSERT INTO {schema}.workflow_execution_queue
        (id, due, run_at, created_at, redrive_of, live_redrive_of, {request/given})
    SELECT f.new_id, true, clock.now, clock.now, f.id, f.id, {request/given}
    FROM failed f, clock ORDER BY f.ordinal
    ON CONFLICT (live_redrive_of) WHERE live_redrive_of IS NOT NULL DO NOTHING
    RETURNING id, workspace_id, rank, created_at, bytes, redrive_of
), marked AS (
    UPDATE {schema}.workflow_execution_queue SET redriven = true WHERE id = ANY (ARRAY(SELECT redrive_of FROM inserted))
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, to_status, at, rank, line_at, by_whom, reason, bytes)
    SELECT id, workspace_id, 'PENDING', created_at, rank, created_at, $5, 'redrive', bytes FROM inserted
)
SELECT redrive_of, id, (SELECT {schema}.leasehold_notify()) AS notified FROM inserted ORDER BY redrive_of
