-- Lists the last runs that begin before a job, last first; ?2 NULL: of all queues.
SELECT first_job, last_job FROM job_line
WHERE first_job < ?1 AND (?2 IS NULL OR queue_id = ?2) ORDER BY first_job DESC LIMIT ?3
