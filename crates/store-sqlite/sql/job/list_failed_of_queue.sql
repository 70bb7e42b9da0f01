-- Lists a page of a queue's failed jobs, newest first.
SELECT job_id FROM job_end INDEXED BY job_end_of_failed WHERE failed = 1 AND queue_id = ?3 AND job_id < ?1 ORDER BY job_id DESC LIMIT ?2
