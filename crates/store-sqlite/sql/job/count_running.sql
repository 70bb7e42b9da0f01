-- How many jobs of all queues workers have.
SELECT coalesce(sum(size), 0) FROM job_lease INDEXED BY job_lease_expiry
