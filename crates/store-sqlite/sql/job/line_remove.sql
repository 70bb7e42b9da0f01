-- Takes a run out of its line.
DELETE FROM job_line WHERE queue_id = ?1 AND priority = ?2 AND first_job = ?3
