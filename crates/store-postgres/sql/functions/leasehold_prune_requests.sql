-- Deletes at most `most` finished requests with their executions, oldest first. Returns how many, and where the next call begins.
-- release: 1
-- Leaves their events, which expire with their partition, so folds and claims do not wait for it, and a fold counts events of deleted requests as others.
-- Does not wait for rows that another transaction has locked, and looks at no more than ten times `most` requests of each kind. completed_to and
-- failed_to: the end of the oldest requests looked at; there may be `more` after them. A caller that passes these times as completed_from and
-- failed_from gets past requests that cannot be deleted, however many there are.
-- Keeps the idempotency keys that have a window; leasehold_enqueue and the program look for them, and pruning keys deletes them when their
-- window has passed.
CREATE OR REPLACE FUNCTION {schema}.leasehold_prune_requests(
    completed_before timestamptz, completed_from timestamptz, failed_before timestamptz, failed_from timestamptz, most integer
) RETURNS TABLE (pruned bigint, completed_to timestamptz, failed_to timestamptz, more boolean)
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    last {schema}.request_fold;
    doomed uuid[];
    others uuid[];
    part uuid[];
    rest integer;
    more_failed boolean;
    skipped integer := 0;
BEGIN
    PERFORM set_config('lock_timeout', '20ms', true);
    SELECT * INTO last FROM {schema}.request_fold ORDER BY id DESC LIMIT 1;
    -- What folds left behind because it was locked.
    DELETE FROM {schema}.request_fold WHERE id = ANY (ARRAY(SELECT id FROM {schema}.request_fold WHERE id < last.id FOR UPDATE SKIP LOCKED));
    DELETE FROM {schema}.workspace_delta WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {schema}.workspace_delta WHERE xid < pg_snapshot_xmin(last.position) FOR UPDATE SKIP LOCKED));
    pruned := 0;
    -- Reads `old` only as far as needed, so in the ordinary case only the requests to delete.
    WITH old AS MATERIALIZED (
        SELECT request_id AS id, finished_at AS at FROM {schema}.workflow_execution
        WHERE status = 'COMPLETED' AND finished_at < completed_before AND finished_at >= coalesce(completed_from, '-infinity')
        ORDER BY finished_at LIMIT most * 10
    ), free AS MATERIALIZED (
        SELECT o.id, o.at FROM old o CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.workflow_execution_queue q
            WHERE q.id = o.id AND q.status IN ('COMPLETED', 'FAILED')
            LIMIT 1 FOR UPDATE SKIP LOCKED
        ) q LIMIT most
    )
    SELECT array_agg(f.id), coalesce(CASE WHEN count(*) < most THEN (SELECT max(o.at) FROM old o) ELSE max(f.at) END, completed_from),
        CASE WHEN count(*) < most THEN (SELECT count(*) FROM old) = most * 10 ELSE true END
    INTO doomed, completed_to, more FROM free f;
    rest := most - coalesce(cardinality(doomed), 0);
    WITH old AS MATERIALIZED (
        SELECT id, failed_at AS at FROM {schema}.workflow_execution_queue
        WHERE failed_at < failed_before AND failed_at >= coalesce(failed_from, '-infinity')
        ORDER BY failed_at LIMIT most * 10
    ), free AS MATERIALIZED (
        SELECT o.id, o.at FROM old o CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.workflow_execution_queue q
            WHERE q.id = o.id
            LIMIT 1 FOR UPDATE SKIP LOCKED
        ) q LIMIT rest
    )
    SELECT array_agg(f.id), coalesce(CASE WHEN count(*) < rest THEN (SELECT max(o.at) FROM old o) ELSE max(f.at) END, failed_from),
        CASE WHEN count(*) < rest THEN (SELECT count(*) FROM old) = most * 10 ELSE true END
    INTO others, failed_to, more_failed FROM free f;
    doomed := doomed || others;
    more := more OR more_failed;
    -- First all in one part. If one of them has a locked row, those without one. If another was locked meanwhile, each in a part of its own.
    FOR try IN 0 .. coalesce(cardinality(doomed), 0) + 1 LOOP
        IF try = 1 THEN
            WITH execution AS MATERIALIZED (
                SELECT e.id, e.request_id FROM {schema}.workflow_execution e WHERE e.request_id = ANY (doomed)
            ), free_execution AS MATERIALIZED (
                SELECT e.id FROM {schema}.workflow_execution e WHERE e.request_id = ANY (doomed) FOR UPDATE SKIP LOCKED
            ), free_graph AS MATERIALIZED (
                SELECT g.execution_id FROM {schema}.execution_graph g
                WHERE g.execution_id = ANY (ARRAY(SELECT e.id FROM execution e)) FOR UPDATE SKIP LOCKED
            ), free_node AS MATERIALIZED (
                SELECT n.execution_id, n.node FROM {schema}.execution_node n
                WHERE n.execution_id = ANY (ARRAY(SELECT e.id FROM execution e)) FOR UPDATE SKIP LOCKED
            ), locked AS (
                SELECT e.request_id FROM execution e WHERE e.id NOT IN (SELECT f.id FROM free_execution f)
                UNION ALL
                SELECT e.request_id FROM execution e JOIN {schema}.execution_graph g ON g.execution_id = e.id
                WHERE g.execution_id NOT IN (SELECT f.execution_id FROM free_graph f)
                UNION ALL
                SELECT e.request_id FROM execution e JOIN {schema}.execution_node n ON n.execution_id = e.id
                WHERE (n.execution_id, n.node) NOT IN (SELECT f.execution_id, f.node FROM free_node f)
            )
            SELECT array_agg(d.id) INTO doomed FROM unnest(doomed) AS d (id) WHERE d.id NOT IN (SELECT l.request_id FROM locked l);
        END IF;
        EXIT WHEN doomed IS NULL OR skipped > 10 OR try > cardinality(doomed) + 1;
        part := CASE WHEN try <= 1 THEN doomed ELSE doomed[try - 1:try - 1] END;
        BEGIN
            WITH kept AS (
                INSERT INTO {schema}.kept_key AS k (workspace_id, request_id, definition_id, dedupe_until, key, params_hash)
                SELECT q.workspace_id, q.id, q.definition_id, q.dedupe_until, q.idempotency_key,
                    sha256(convert_to(q.params::text, 'UTF8'))
                FROM {schema}.workflow_execution_queue q
                WHERE q.id = ANY (part) AND q.idempotency_key IS NOT NULL AND q.dedupe_until IS NOT NULL
                ORDER BY q.workspace_id, q.idempotency_key COLLATE "C"
                ON CONFLICT (workspace_id, key) DO UPDATE
                SET request_id = excluded.request_id, definition_id = excluded.definition_id, dedupe_until = excluded.dedupe_until,
                    params_hash = excluded.params_hash
                WHERE k.dedupe_until < excluded.dedupe_until
            ), gone AS (
                DELETE FROM {schema}.workflow_execution_queue WHERE id = ANY (part) RETURNING workspace_id, status
            ), noted AS (
                INSERT INTO {schema}.workspace_delta (workspace_id, completed, failed)
                SELECT workspace_id, -count(*) FILTER (WHERE status = 'COMPLETED'), -count(*) FILTER (WHERE status = 'FAILED')
                FROM gone GROUP BY workspace_id
            )
            SELECT pruned + count(*) INTO pruned FROM gone;
            EXIT WHEN try <= 1;
        EXCEPTION WHEN lock_not_available THEN
            skipped := skipped + (try > 1)::integer;
        END;
    END LOOP;
    -- Many requests may have ended at the same time. If none of them could be deleted, the next call begins after it.
    IF pruned = 0 THEN
        completed_to := CASE WHEN completed_to <= completed_from THEN completed_from + interval '1 microsecond' ELSE completed_to END;
        failed_to := CASE WHEN failed_to <= failed_from THEN failed_from + interval '1 microsecond' ELSE failed_to END;
    END IF;
    RETURN NEXT;
END
$$
