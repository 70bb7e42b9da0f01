-- After how many attempts a job ended.
SELECT attempts FROM job_end WHERE job_id = ?1
