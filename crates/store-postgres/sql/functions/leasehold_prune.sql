-- Deletes at most `most` finished requests with their executions and events, and returns how many.
-- release: 2
-- Holds the lock of the fold and folds first, so that it deletes no request with unfolded events. Keeps the idempotency keys that have a
-- window; leasehold_enqueue and the program look for them, and pruning keys deletes them when their window has passed.
CREATE OR REPLACE FUNCTION leasehold_prune(completed_before timestamptz, failed_before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    folded pg_snapshot;
    pruned bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    PERFORM leasehold_fold();
    SELECT position INTO folded FROM request_fold ORDER BY id DESC LIMIT 1;
    WITH old AS (
        (SELECT request_id AS id FROM workflow_execution
        WHERE status = 'COMPLETED' AND finished_at < completed_before ORDER BY finished_at LIMIT most)
        UNION ALL
        (SELECT id FROM workflow_execution_queue WHERE failed_at < failed_before ORDER BY failed_at LIMIT most)
        LIMIT most
    ), doomed AS MATERIALIZED (
        SELECT q.id, q.workspace_id, q.definition_id, q.idempotency_key, q.dedupe_until,
            CASE WHEN q.idempotency_key IS NOT NULL AND q.dedupe_until IS NOT NULL
                THEN sha256(convert_to(q.params::text, 'UTF8')) END AS params_hash
        FROM workflow_execution_queue q
        WHERE q.id = ANY (ARRAY(SELECT id FROM old)) AND q.status IN ('COMPLETED', 'FAILED') AND NOT EXISTS (
            SELECT 1 FROM request_event e WHERE e.request_id = q.id AND NOT pg_visible_in_snapshot(e.xid, folded))
        FOR UPDATE OF q SKIP LOCKED
    ), kept AS (
        INSERT INTO kept_key AS k (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
        SELECT d.workspace_id, d.id, d.definition_id, d.dedupe_until, d.idempotency_key, d.params_hash
        FROM doomed d WHERE d.params_hash IS NOT NULL ORDER BY d.workspace_id, d.idempotency_key COLLATE "C"
        ON CONFLICT (workspace_id, key) DO UPDATE
        SET request_id = excluded.request_id, definition_id = excluded.definition_id, dedupe_until = excluded.dedupe_until,
            params_hash = excluded.params_hash
        WHERE k.dedupe_until < excluded.dedupe_until
    ), forgotten AS (
        DELETE FROM request_event WHERE request_id = ANY (ARRAY(SELECT id FROM doomed))
    ), gone AS (
        DELETE FROM workflow_execution_queue WHERE id = ANY (ARRAY(SELECT id FROM doomed))
        RETURNING workspace_id, status
    ), noted AS (
        INSERT INTO workspace_delta (workspace_id, completed, failed)
        SELECT workspace_id, -count(*) FILTER (WHERE status = 'COMPLETED'), -count(*) FILTER (WHERE status = 'FAILED')
        FROM gone GROUP BY workspace_id
    )
    SELECT count(*) INTO pruned FROM gone;
    RETURN pruned;
END
$$
