-- Reads the page of leases with a fencing token.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease WHERE token = ?1
