-- CLAIMED → DISPATCHED for requests whose executions $3 have ended: the last step before their end.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), held AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution e JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
    WHERE e.id = ANY ($3) AND e.finished_at IS NULL AND q.execution_id = e.id AND q.status = 'CLAIMED'
    ORDER BY q.id FOR UPDATE OF q, e SKIP LOCKED
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = 'DISPATCHED', dispatched_at = clock.now, claimed_by = NULL, lease_expires_at = NULL
    FROM held, clock WHERE q.id = held.id
    RETURNING q.id, q.workspace_id
)
INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom)
SELECT moved.id, moved.workspace_id, 'CLAIMED', 'DISPATCHED', clock.now, $2 FROM moved, clock
