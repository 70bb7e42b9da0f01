-- How many jobs of a queue workers have.
SELECT coalesce(sum(size), 0) FROM job_lease INDEXED BY job_lease_of_queue WHERE queue_id = ?1
