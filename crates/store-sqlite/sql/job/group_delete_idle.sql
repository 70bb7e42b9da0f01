-- Deletes the groups of a queue that have no job due and none that runs.
DELETE FROM job_group WHERE queue_id = ?1 AND has_jobs = 0 AND running = 0
