-- The first runs of a queue's lines, in the order of claiming.
SELECT priority, first_job, last_job FROM job_line WHERE queue_id = ?1 ORDER BY priority DESC, first_job LIMIT ?2
