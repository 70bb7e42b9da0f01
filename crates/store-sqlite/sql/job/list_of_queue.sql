-- Lists a page of a queue's jobs, newest first.
SELECT id FROM job INDEXED BY job_of_queue WHERE queue_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2
