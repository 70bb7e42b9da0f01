-- Lists a page of a queue's completed jobs, newest first. Reads the jobs of the queue, because an index of completed jobs would cost each job a write.
SELECT j.id FROM job j INDEXED BY job_of_queue CROSS JOIN job_end e ON e.job_id = j.id
WHERE j.queue_id = ?3 AND j.id < ?1 AND e.failed = 0 ORDER BY j.id DESC LIMIT ?2
