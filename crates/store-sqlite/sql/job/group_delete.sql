-- Deletes a group that has no job due and none that runs.
DELETE FROM job_group WHERE queue_id = ?1 AND group_name = ?2 AND has_jobs = 0 AND running = 0
