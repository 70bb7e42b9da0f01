-- Sets how many jobs of all queues may run at once.
UPDATE job_limit SET max_running = ?1 WHERE id = 1
