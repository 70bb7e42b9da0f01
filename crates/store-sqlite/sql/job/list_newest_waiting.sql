-- Lists the newest waiting jobs of all queues before a job, up to ?2, with whether they are of the queue ?3.
SELECT job_id, queue_id = ?3 FROM job_waiting NOT INDEXED WHERE job_id < ?1 ORDER BY job_id DESC LIMIT ?2
