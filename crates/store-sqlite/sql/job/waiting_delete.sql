-- Deletes a waiting job.
DELETE FROM job_waiting WHERE job_id = ?1
