-- Reads the limit on running jobs of all queues.
SELECT max_running FROM job_limit WHERE id = 1
