-- Deletes a run.
DELETE FROM job_line WHERE queue_id = ?1 AND priority = ?2 AND first_job = ?3
