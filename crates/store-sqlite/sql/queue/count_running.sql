-- Counts the running jobs of a queue.
SELECT coalesce(sum(size), 0) FROM job_lease INDEXED BY job_lease_of_queue WHERE queue_id = ?1
