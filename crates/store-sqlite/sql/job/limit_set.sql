-- Sets the limit on running jobs of all queues.
UPDATE job_limit SET max_running = ?1 WHERE id = 1
