-- Returns the limit of all queues together.
SELECT max_running FROM {schema}.job_limit
