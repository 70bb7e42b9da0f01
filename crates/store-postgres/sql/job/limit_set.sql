-- Sets the limit of all queues together.
UPDATE {schema}.job_limit SET max_running = $1
