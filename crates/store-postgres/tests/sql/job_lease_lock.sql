-- Locks a page of leases.
SELECT token FROM leasehold.job_lease FOR UPDATE
