-- PENDING → CLAIMED for requests whose kept executions $3 have ended: the first step to their end.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), held AS MATERIALIZED (
    SELECT q.id FROM {schema}.workflow_execution e JOIN {schema}.workflow_execution_queue q ON q.id = e.request_id
    WHERE e.id = ANY ($3) AND e.finished_at IS NULL AND q.execution_id = e.id AND q.status = 'PENDING'
    ORDER BY q.id FOR UPDATE OF q, e SKIP LOCKED
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = 'CLAIMED', due = NULL, claim_token = q.claim_token + 1, claimed_by = $2, claimed_at = clock.now,
        lease_expires_at = clock.now
    FROM held, clock WHERE q.id = held.id
    RETURNING q.id, q.workspace_id
)
INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom)
SELECT moved.id, moved.workspace_id, 'PENDING', 'CLAIMED', clock.now, $2 FROM moved, clock
