-- Lists a page of waiting jobs of all queues, newest first.
SELECT job_id FROM job_waiting NOT INDEXED WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
