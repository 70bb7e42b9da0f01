-- Finds the last run of a line that begins at a job or before it.
SELECT first_job, last_job FROM job_line
WHERE queue_id = ?1 AND priority = ?2 AND first_job <= ?3 ORDER BY first_job DESC LIMIT 1
