-- Whether a job has ended.
SELECT EXISTS (SELECT 1 FROM job_end WHERE job_id = ?1)
