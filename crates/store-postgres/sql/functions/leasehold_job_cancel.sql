-- Cancels a job and returns one of: cancelled, running, finished, of_graph, not_found.
-- release: 1
-- Claims of the queue wait for this, so it waits for no row: if another transaction has locked one of the job, it fails (lock_not_available), and the
-- caller tries again.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_cancel(p_now timestamptz, p_id bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    target {schema}.job;
    waited {schema}.job_waiting;
    moment timestamptz;
BEGIN
    SELECT j.* INTO target FROM {schema}.job j WHERE j.id = p_id;
    IF target.id IS NULL THEN
        RETURN 'not_found';
    END IF;
    IF target.node IS NOT NULL AND NOT EXISTS (SELECT FROM {schema}.job_end e WHERE e.id = p_id) THEN
        RETURN 'of_graph';
    END IF;
    -- Blocks claims of the queue, so the job cannot change its status between the following checks.
    PERFORM pg_advisory_xact_lock(730834, target.queue_id);
    moment := coalesce(p_now, clock_timestamp());
    IF EXISTS (SELECT FROM {schema}.job_lease l WHERE l.queue_id = target.queue_id AND p_id = ANY (l.ids)) THEN
        RETURN 'running';
    END IF;
    PERFORM 1 FROM {schema}.job j WHERE j.id = p_id FOR NO KEY UPDATE NOWAIT;
    PERFORM 1 FROM {schema}.job_waiting w WHERE w.job_id = p_id FOR UPDATE NOWAIT;
    PERFORM 1 FROM {schema}.job_key k WHERE k.job_id = p_id FOR UPDATE NOWAIT;
    PERFORM 1 FROM {schema}.job_note n WHERE n.job_id = p_id FOR UPDATE NOWAIT;
    IF target.group_name IS NOT NULL THEN
        -- The group has its turn since the job was enqueued, also if its other jobs came later.
        PERFORM {schema}.leasehold_job_regroup(target.queue_id, coalesce((SELECT e.job_xid_offset FROM {schema}.epoch e
            WHERE e.server_started_at = pg_postmaster_start_time() LIMIT 1), 0));
    END IF;
    DELETE FROM {schema}.job_waiting w WHERE w.job_id = p_id RETURNING w.* INTO waited;
    IF waited.job_id IS NULL THEN
        IF EXISTS (SELECT FROM {schema}.job_end e WHERE e.id = p_id) THEN
            RETURN 'finished';
        END IF;
        -- Takes the job out of its line: the only update of a job's row.
        UPDATE {schema}.job j SET run_at = j.created_at WHERE j.id = p_id AND j.run_at IS NULL;
        IF NOT FOUND THEN
            RETURN 'not_found';
        END IF;
    END IF;
    IF target.group_name IS NOT NULL THEN
        PERFORM {schema}.leasehold_job_leave(target.queue_id, target.group_name);
    END IF;
    INSERT INTO {schema}.job_end (id, finished_at, token, attempts, status, last_error)
    VALUES (p_id, moment, coalesce(waited.token, 0), coalesce(waited.attempts, 0), 'failed', 'cancelled');
    DELETE FROM {schema}.job_key k WHERE k.job_id = p_id AND k.holds_until IS NULL;
    DELETE FROM {schema}.job_note n WHERE n.job_id = p_id;
    RETURN 'cancelled';
END
$$
