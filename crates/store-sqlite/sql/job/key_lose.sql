-- Releases the key of a job whose window has passed.
DELETE FROM job_key WHERE job_id = ?1
