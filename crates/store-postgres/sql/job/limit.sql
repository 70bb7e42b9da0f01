-- Returns the limit of all queues together.
SELECT max_running FROM job_limit
