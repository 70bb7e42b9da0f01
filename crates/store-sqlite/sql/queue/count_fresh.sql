-- Counts the fresh jobs of a queue: never claimed, due at once.
SELECT coalesce(sum(last_job - first_job + 1), 0) AS fresh FROM job_line WHERE queue_id = ?1
