-- How many jobs of a queue are completed, and how many failed.
SELECT coalesce(sum(NOT failed), 0) AS completed, coalesce(sum(failed), 0) AS failed FROM job_end WHERE queue_id = ?1
