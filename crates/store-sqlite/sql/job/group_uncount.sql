-- Forgets how many jobs of each group run.
UPDATE job_group SET running = 0 WHERE queue_id = ?1 AND running > 0
