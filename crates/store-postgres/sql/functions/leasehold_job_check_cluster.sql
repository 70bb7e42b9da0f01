-- Requeues fresh jobs if the database was moved to another cluster, by a restored dump or by replication.
-- release: 1
-- The transaction numbers in the rows are invalid there. Fresh jobs become waiting jobs, and lines restart empty. Every
-- process calls this before its first claim and once a minute. Returns whether it requeued jobs.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_check_cluster() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    here bigint := (SELECT system_identifier FROM pg_control_system());
BEGIN
    -- A cursor ahead of the current transaction number also shows that the rows came from another cluster.
    IF here = (SELECT cluster FROM {schema}.job_limit)
        AND NOT EXISTS (SELECT FROM {schema}.job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    -- The row before the lock, like a change of the limit.
    PERFORM 1 FROM {schema}.job_limit FOR NO KEY UPDATE;
    PERFORM pg_advisory_xact_lock(730833, 0);
    LOCK TABLE {schema}.job, {schema}.job_waiting, {schema}.job_lease, {schema}.job_end IN SHARE ROW EXCLUSIVE MODE;
    IF here = (SELECT cluster FROM {schema}.job_limit)
        AND NOT EXISTS (SELECT FROM {schema}.job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    INSERT INTO {schema}.job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
    SELECT j.id, j.created_at, j.created_at, j.queue_id, j.priority, true
    FROM {schema}.job j
    WHERE j.run_at IS NULL
        AND NOT EXISTS (SELECT FROM {schema}.job_end e WHERE e.id = j.id)
        AND NOT EXISTS (SELECT FROM {schema}.job_waiting w WHERE w.job_id = j.id)
        AND j.id NOT IN (SELECT unnest(l.ids) FROM {schema}.job_lease l);
    UPDATE {schema}.job j SET run_at = j.created_at WHERE j.run_at IS NULL;
    DELETE FROM {schema}.job_cursor;
    UPDATE {schema}.job_limit SET cluster = here;
    RETURN true;
END
$$
