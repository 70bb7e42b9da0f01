-- Lists a page of completed jobs of all queues, newest first.
SELECT job_id FROM job_end NOT INDEXED WHERE failed = 0 AND job_id < ?1 ORDER BY job_id DESC LIMIT ?2
