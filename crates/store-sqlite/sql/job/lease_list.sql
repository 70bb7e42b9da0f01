-- Lists all pages of leases.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease
