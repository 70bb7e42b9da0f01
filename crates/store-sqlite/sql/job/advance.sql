-- Stores the id of the last job.
UPDATE job_number SET last_job = ?1 WHERE id = 1
