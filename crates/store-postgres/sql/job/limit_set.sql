-- Sets the limit of all queues together.
UPDATE job_limit SET max_running = $1
