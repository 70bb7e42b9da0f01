-- Sets a run's first job.
UPDATE job_line SET first_job = ?4 WHERE queue_id = ?1 AND priority = ?2 AND first_job = ?3
