-- Lists pages of a queue with an expired lease, longest expired first.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease INDEXED BY job_lease_of_queue
WHERE queue_id = ?3 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2
