-- Stores the progress that p_worker reports for a job; returns false if the lease is lost.
-- release: 1
-- Renewals and results of other jobs in the page are skipped while this holds it, so it waits for no row: if another transaction has locked one, it
-- fails (lock_not_available), and the caller tries again.
CREATE OR REPLACE FUNCTION {schema}.leasehold_job_progress(p_now timestamptz, p_worker text, p_token bigint, p_id bigint, p_progress json)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    page {schema}.job_lease;
BEGIN
    SELECT l.* INTO page FROM {schema}.job_lease l WHERE l.token = p_token AND l.worker = p_worker FOR UPDATE NOWAIT;
    IF NOT coalesce(page.ends[array_position(page.ids, p_id)] > coalesce(p_now, clock_timestamp()), false) THEN
        RETURN false;
    END IF;
    PERFORM 1 FROM {schema}.job_note n WHERE n.job_id = p_id FOR UPDATE NOWAIT;
    INSERT INTO {schema}.job_note (job_id, progress) VALUES (p_id, p_progress)
    ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress;
    RETURN true;
END
$$
