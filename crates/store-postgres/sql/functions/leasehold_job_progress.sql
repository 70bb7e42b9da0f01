-- Stores the progress that p_worker reports for a job; returns false if the lease is lost.
-- release: 1
CREATE OR REPLACE FUNCTION leasehold_job_progress(p_now timestamptz, p_worker text, p_token bigint, p_id bigint, p_progress json)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    page job_lease;
BEGIN
    SELECT l.* INTO page FROM job_lease l WHERE l.token = p_token AND l.worker = p_worker FOR UPDATE;
    IF NOT coalesce(page.ends[array_position(page.ids, p_id)] > coalesce(p_now, clock_timestamp()), false) THEN
        RETURN false;
    END IF;
    INSERT INTO job_note (job_id, progress) VALUES (p_id, p_progress)
    ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress;
    RETURN true;
END
$$
