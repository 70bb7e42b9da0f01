-- Lists the last runs of a queue that begin before a job, last first.
SELECT first_job, last_job FROM job_line WHERE queue_id = ?3 AND first_job < ?1 ORDER BY first_job DESC LIMIT ?2
