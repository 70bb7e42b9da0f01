-- Makes the rows of another cluster valid in this one, under the locks of the fold and of the tables; for leasehold_fold.
-- release: 1
-- Transaction numbers in rows are invalid after a restored dump or a move by replication: events count as folded, and all requests are recounted.
CREATE OR REPLACE FUNCTION {schema}.leasehold_adopt_cluster() RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(7308332186);
    LOCK TABLE {schema}.workflow_execution_queue, {schema}.workspace_turn IN SHARE ROW EXCLUSIVE MODE;
    UPDATE {schema}.request_event SET xid = '3';
    UPDATE {schema}.event_partition SET sealed = '3' WHERE sealed IS NOT NULL;
    UPDATE {schema}.workspace_turn t
    SET pending = coalesce(c.pending, 0), claimed = coalesce(c.claimed, 0), dispatched = coalesce(c.dispatched, 0),
        completed = coalesce(c.completed, 0), failed = coalesce(c.failed, 0), open_bytes = coalesce(c.open_bytes, 0),
        has_work = true, has_room = true, ready = t.deleted OR (NOT t.paused AND t.concurrency_limit > 0),
        line_rank = DEFAULT, line_at = DEFAULT, line_id = DEFAULT,
        written_by = pg_current_xact_id()
    FROM {schema}.workspace w
    LEFT JOIN (
        SELECT workspace_id,
            count(*) FILTER (WHERE status = 'PENDING') AS pending,
            count(*) FILTER (WHERE status = 'CLAIMED') AS claimed,
            count(*) FILTER (WHERE status = 'DISPATCHED') AS dispatched,
            count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
            count(*) FILTER (WHERE status = 'FAILED') AS failed,
            sum(bytes + coalesce(execution_bytes, 0)) FILTER (WHERE finished_at IS NULL) AS open_bytes
        FROM {schema}.workflow_execution_queue GROUP BY workspace_id
    ) c ON c.workspace_id = w.id
    WHERE t.workspace_id = w.id;
    PERFORM setval('{schema}.admission_number'::regclass, greatest(
        (SELECT last_value FROM {schema}.admission_number),
        (SELECT max(turn) FROM {schema}.workspace_turn),
        (SELECT max(admission) FROM {schema}.workflow_execution)));
    DELETE FROM {schema}.workspace_delta;
    DELETE FROM {schema}.request_fold;
    INSERT INTO {schema}.request_fold (position, round_from)
    SELECT {schema}.leasehold_hide_self(pg_current_snapshot()), coalesce(min(turn), 0) FROM {schema}.workspace_turn;
END
$$
