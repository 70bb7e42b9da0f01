-- Lists the first runs of a queue, in claim order.
SELECT priority, first_job, last_job FROM job_line WHERE queue_id = ?1 ORDER BY priority DESC, first_job LIMIT ?2
