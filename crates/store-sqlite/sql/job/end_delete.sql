-- Deletes a job's end.
DELETE FROM job_end WHERE job_id = ?1
