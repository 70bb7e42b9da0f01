-- Lists the newest ended jobs of all queues before a job, up to ?2, with whether they are completed jobs of the queue ?3.
SELECT job_id, failed = 0 AND queue_id = ?3 FROM job_end NOT INDEXED WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
