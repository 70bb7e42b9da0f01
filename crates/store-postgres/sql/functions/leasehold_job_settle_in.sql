-- Requeues fresh jobs after the rows came into another cluster, by a restored dump or by replication.
-- release: 1
-- The transaction numbers in the rows mean nothing there. Fresh jobs then wait like those that were tried before, and lines
-- begin anew. Every process calls it before its first claim and once a minute.
CREATE OR REPLACE FUNCTION leasehold_job_settle_in() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    here bigint := (SELECT system_identifier FROM pg_control_system());
BEGIN
    -- A cursor from the future is another sign.
    IF here = (SELECT cluster FROM job_limit)
        AND NOT EXISTS (SELECT FROM job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(730833, 0);
    LOCK TABLE job, job_waiting, job_lease, job_end IN SHARE ROW EXCLUSIVE MODE;
    IF here = (SELECT cluster FROM job_limit)
        AND NOT EXISTS (SELECT FROM job_cursor c WHERE c.at_xid >= pg_snapshot_xmax(pg_current_snapshot()))
    THEN
        RETURN false;
    END IF;
    INSERT INTO job_waiting (job_id, created_at, run_at, queue_id, priority, ready)
    SELECT j.id, j.created_at, j.created_at, j.queue_id, j.priority, true
    FROM job j
    WHERE j.run_at IS NULL
        AND NOT EXISTS (SELECT FROM job_end e WHERE e.id = j.id)
        AND NOT EXISTS (SELECT FROM job_waiting w WHERE w.job_id = j.id)
        AND j.id NOT IN (SELECT unnest(l.ids) FROM job_lease l);
    UPDATE job j SET run_at = j.created_at WHERE j.run_at IS NULL;
    DELETE FROM job_cursor;
    UPDATE job_limit SET cluster = here;
    RETURN true;
END
$$
