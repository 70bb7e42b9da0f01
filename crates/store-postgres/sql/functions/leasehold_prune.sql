-- Deletes at most `most` finished requests with their executions and events, and returns how many.
-- release: 3
-- Holds the lock of the fold and folds first, so that it deletes no request with unfolded events. Folds and claims wait for it, so it does not
-- wait for rows that another transaction has locked: if it meets one, it deletes request by request and leaves out those. Keeps the
-- idempotency keys that have a window; leasehold_enqueue and the program look for them, and pruning keys deletes them when their window has
-- passed.
CREATE OR REPLACE FUNCTION leasehold_prune(completed_before timestamptz, failed_before timestamptz, most integer) RETURNS bigint
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    last request_fold;
    doomed uuid[];
    part uuid[];
    pruned bigint := 0;
    skipped integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    PERFORM leasehold_fold();
    PERFORM set_config('lock_timeout', '20ms', true);
    SELECT * INTO last FROM request_fold ORDER BY id DESC LIMIT 1;
    -- What folds left behind because it was locked.
    DELETE FROM request_fold WHERE id = ANY (ARRAY(SELECT id FROM request_fold WHERE id < last.id FOR UPDATE SKIP LOCKED));
    DELETE FROM workspace_delta WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM workspace_delta WHERE xid < pg_snapshot_xmin(last.position) FOR UPDATE SKIP LOCKED));
    WITH old AS (
        (SELECT request_id AS id FROM workflow_execution
        WHERE status = 'COMPLETED' AND finished_at < completed_before ORDER BY finished_at LIMIT most)
        UNION ALL
        (SELECT id FROM workflow_execution_queue WHERE failed_at < failed_before ORDER BY failed_at LIMIT most)
        LIMIT most
    )
    SELECT array_agg(d.id) INTO doomed FROM (
        SELECT q.id FROM workflow_execution_queue q
        WHERE q.id = ANY (ARRAY(SELECT id FROM old)) AND q.status IN ('COMPLETED', 'FAILED') AND NOT EXISTS (
            SELECT 1 FROM request_event e WHERE e.request_id = q.id AND NOT pg_visible_in_snapshot(e.xid, last.position))
        FOR UPDATE OF q SKIP LOCKED
    ) d;
    -- First all in one part; if a row is locked, each request in a part of its own.
    FOR try IN 0..coalesce(cardinality(doomed), 0) LOOP
        EXIT WHEN doomed IS NULL OR skipped > 10;
        part := CASE WHEN try = 0 THEN doomed ELSE doomed[try:try] END;
        BEGIN
            WITH kept AS (
                INSERT INTO kept_key AS k (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
                SELECT q.workspace_id, q.id, q.definition_id, q.dedupe_until, q.idempotency_key,
                    sha256(convert_to(q.params::text, 'UTF8'))
                FROM workflow_execution_queue q
                WHERE q.id = ANY (part) AND q.idempotency_key IS NOT NULL AND q.dedupe_until IS NOT NULL
                ORDER BY q.workspace_id, q.idempotency_key COLLATE "C"
                ON CONFLICT (workspace_id, key) DO UPDATE
                SET request_id = excluded.request_id, definition_id = excluded.definition_id, dedupe_until = excluded.dedupe_until,
                    params_hash = excluded.params_hash
                WHERE k.dedupe_until < excluded.dedupe_until
            ), forgotten AS (
                DELETE FROM request_event WHERE request_id = ANY (part)
            ), gone AS (
                DELETE FROM workflow_execution_queue WHERE id = ANY (part) RETURNING workspace_id, status
            ), noted AS (
                INSERT INTO workspace_delta (workspace_id, completed, failed)
                SELECT workspace_id, -count(*) FILTER (WHERE status = 'COMPLETED'), -count(*) FILTER (WHERE status = 'FAILED')
                FROM gone GROUP BY workspace_id
            )
            SELECT pruned + count(*) INTO pruned FROM gone;
            EXIT WHEN try = 0;
        EXCEPTION WHEN lock_not_available THEN
            skipped := skipped + (try > 0)::integer;
        END;
    END LOOP;
    RETURN pruned;
END
$$
