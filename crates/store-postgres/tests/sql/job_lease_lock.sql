-- Locks a page of leases.
SELECT token FROM job_lease FOR UPDATE
