-- Lists pages with an expired lease, longest expired first.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease INDEXED BY job_lease_expiry
WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2
