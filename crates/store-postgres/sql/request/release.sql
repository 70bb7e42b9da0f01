-- Releases or fails the claims that $2 still holds. For each claim: keep its execution, count a dispatch failure, maximum of failures, delay,
-- error, and the failure reason if it fails at once. Skips a claim whose request or whose execution is locked.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::timestamptz, statement_timestamp()) AS now
), claim AS MATERIALIZED (
    SELECT q.id, q.execution_id, c.keep, c.counted, c.delay, c.error, c.word,
        CASE WHEN c.reason IS NOT NULL THEN c.reason
            WHEN NOT c.keep AND q.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN c.counted AND q.dispatch_failures + 1 >= c.max_attempts THEN 'dispatch_exhausted' END AS reason
    FROM unnest($3::uuid[], $4::bigint[], $5::boolean[], $6::boolean[], $7::integer[], $8::bigint[], $9::text[],
        $10::text[], $11::text[]) AS c (id, token, keep, counted, max_attempts, delay, error, reason, word)
    JOIN {schema}.workflow_execution_queue q ON q.id = c.id
    WHERE q.claim_token = c.token AND q.claimed_by = $2 AND q.status = 'CLAIMED'
    ORDER BY q.id FOR UPDATE OF q SKIP LOCKED
), deletable AS MATERIALIZED (
    SELECT e.id FROM {schema}.workflow_execution e
    WHERE e.id = ANY (ARRAY(SELECT c.execution_id FROM claim c WHERE NOT c.keep)) FOR UPDATE SKIP LOCKED
), held AS MATERIALIZED (
    SELECT c.* FROM claim c
    WHERE c.keep OR c.execution_id IN (SELECT d.id FROM deletable d)
        OR NOT EXISTS (SELECT 1 FROM {schema}.workflow_execution e WHERE e.id = c.execution_id)
), moved AS (
    UPDATE {schema}.workflow_execution_queue q
    SET status = CASE WHEN h.reason IS NULL THEN 'PENDING' ELSE 'FAILED' END,
        due = CASE WHEN h.reason IS NULL THEN h.delay = 0 END,
        run_at = CASE WHEN h.reason IS NULL THEN clock.now + h.delay::double precision * interval '1 microsecond' ELSE q.run_at END,
        execution_id = CASE WHEN h.keep THEN q.execution_id END,
        attempt_count = q.attempt_count + 1,
        dispatch_failures = q.dispatch_failures + h.counted::integer,
        claimed_at = CASE WHEN h.reason IS NOT NULL THEN q.claimed_at END,
        claimed_by = NULL,
        lease_expires_at = NULL,
        finished_at = CASE WHEN h.reason IS NOT NULL THEN clock.now END,
        failure_reason = h.reason,
        live_redrive_of = CASE WHEN h.reason IS NULL THEN q.live_redrive_of END,
        last_error = coalesce(h.error, q.last_error)
    FROM held h, clock WHERE q.id = h.id
    RETURNING q.id, q.workspace_id, q.status, q.due, q.rank, q.created_at, q.execution_id, q.failure_reason, h.word,
        CASE WHEN h.reason IS NOT NULL THEN -(q.bytes + coalesce(q.execution_bytes, 0)) END AS bytes
), freed AS (
    DELETE FROM {schema}.workflow_execution WHERE id = ANY (ARRAY(SELECT execution_id FROM held WHERE NOT keep))
), logged AS (
    INSERT INTO {schema}.request_event (request_id, workspace_id, from_status, to_status, at, rank, line_at, by_whom, reason, bytes)
    SELECT m.id, m.workspace_id, 'CLAIMED', m.status, clock.now,
        CASE WHEN m.due AND m.execution_id IS NULL THEN m.rank END,
        CASE WHEN m.due AND m.execution_id IS NULL THEN m.created_at END, $2, coalesce(m.failure_reason, m.word), m.bytes
    FROM moved m, clock
)
SELECT id, failure_reason, (SELECT {schema}.leasehold_notify()) AS notified FROM moved
