-- Promotes at most `most` requests whose run_at has passed into the lines of their workspaces, and returns how many.
-- release: 1
-- The next fold makes their workspaces ready.
CREATE OR REPLACE FUNCTION {schema}.leasehold_promote_due(now timestamptz, most integer) RETURNS bigint LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    promoted bigint;
BEGIN
    PERFORM 1 FROM {schema}.workflow_execution_queue WHERE NOT due AND run_at <= now LIMIT 1;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Lock order: the lock of the fold comes before row locks.
    PERFORM pg_advisory_xact_lock(7308332186);
    WITH passed AS MATERIALIZED (
        SELECT ctid AS tid FROM {schema}.workflow_execution_queue
        WHERE NOT due AND run_at <= now
        ORDER BY run_at LIMIT most
        FOR UPDATE SKIP LOCKED
    ), lined AS (
        UPDATE {schema}.workflow_execution_queue q SET due = true FROM passed WHERE q.ctid = passed.tid
        RETURNING q.workspace_id, q.rank, q.created_at, q.execution_id
    ), noted AS (
        INSERT INTO {schema}.workspace_delta (workspace_id, rank, line_at)
        SELECT workspace_id, min(rank), min(created_at) FROM lined WHERE execution_id IS NULL GROUP BY workspace_id
    )
    SELECT count(*) INTO promoted FROM lined;
    RETURN promoted;
END
$$
