-- Reads the id of the last job.
SELECT last_job FROM job_number WHERE id = 1
