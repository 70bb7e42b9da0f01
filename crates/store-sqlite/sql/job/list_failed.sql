-- Lists a page of failed jobs, newest first; ?2 NULL: of all queues.
SELECT job_id FROM job_end INDEXED BY job_end_of_failed
WHERE failed = 1 AND job_id < ?1 AND (?2 IS NULL OR queue_id = ?2) ORDER BY job_id DESC LIMIT ?3
