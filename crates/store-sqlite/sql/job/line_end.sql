-- Sets a run's last job.
UPDATE job_line SET last_job = ?4 WHERE queue_id = ?1 AND priority = ?2 AND first_job = ?3
