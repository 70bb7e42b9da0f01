-- Lists a page of a queue's waiting jobs, newest first.
SELECT job_id FROM (
    SELECT job_id FROM job_waiting INDEXED BY job_waiting_line WHERE queue_id = ?3 AND ready = 1 AND job_id < ?1
    UNION ALL
    SELECT job_id FROM job_waiting INDEXED BY job_waiting_due WHERE queue_id = ?3 AND ready = 0 AND job_id < ?1
) ORDER BY job_id DESC LIMIT ?2
