-- Takes a group out of the round, unless it has a ready job.
UPDATE job_group SET has_jobs = 0, ready = 0
WHERE queue_id = ?1 AND group_name = ?2 AND has_jobs = 1
    AND NOT EXISTS (SELECT 1 FROM job_waiting INDEXED BY job_waiting_line WHERE queue_id = ?1 AND group_name = ?2 AND ready = 1)
