-- How many jobs of all queues may run at once.
SELECT max_running FROM job_limit WHERE id = 1
