-- How many jobs of a queue no worker ever had and may run at once.
SELECT coalesce(sum(last_job - first_job + 1), 0) AS fresh FROM job_line WHERE queue_id = ?1
