-- Counts the running jobs of all queues.
SELECT coalesce(sum(size), 0) FROM job_lease INDEXED BY job_lease_expiry
