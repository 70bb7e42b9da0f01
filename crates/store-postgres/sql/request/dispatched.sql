-- CLAIMED → DISPATCHED for the claims that $2 still holds. Notifies the canceller if one was cancelled meanwhile. Skips locked rows.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), held AS MATERIALIZED (
    SELECT q.id FROM unnest($3::uuid[], $4::bigint[]) AS c (id, token)
    JOIN {schema}.workflow_execution_queue q ON q.id = c.id
    WHERE q.claim_token = c.token AND q.claimed_by = $2 AND q.status = 'CLAIMED'
    ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = 'DISPATCHED', dispatched_at = clock.now, claimed_by = NULL, lease_expires_at = NULL,
        crashes = NULL, crashes_alone = NULL, crashed_process = NULL
    FROM held, clock WHERE q.id = held.id
    RETURNING q.id, q.workspace_id, q.cancel_requested_at
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, by_whom)
    SELECT moved.id, moved.workspace_id, 'CLAIMED', 'DISPATCHED', clock.now, $2 FROM moved, clock
)
SELECT id, cancel_requested_at IS NOT NULL AS cancel_requested,
    CASE WHEN cancel_requested_at IS NOT NULL THEN pg_notify('leasehold', 'cancel') END AS notified
FROM moved
