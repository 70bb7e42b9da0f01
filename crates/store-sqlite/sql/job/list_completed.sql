-- Lists a page of completed jobs, newest first; ?2 NULL: of all queues.
SELECT job_id FROM job_end NOT INDEXED
WHERE failed = 0 AND job_id < ?1 AND (?2 IS NULL OR queue_id = ?2) ORDER BY job_id DESC LIMIT ?3
