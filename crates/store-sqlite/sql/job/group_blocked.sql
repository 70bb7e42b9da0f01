-- Lists the groups that are not in the round and may have a job due.
SELECT group_name FROM job_group WHERE queue_id = ?1 AND ready = 0 AND has_jobs = 1 ORDER BY group_name
