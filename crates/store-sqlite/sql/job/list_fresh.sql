-- Lists the last runs of all queues that begin before a job, last first.
SELECT first_job, last_job FROM job_line WHERE first_job < ?1 ORDER BY first_job DESC LIMIT ?2
