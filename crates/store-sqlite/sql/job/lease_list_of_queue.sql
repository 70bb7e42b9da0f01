-- Lists the pages of leases of a queue.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease INDEXED BY job_lease_of_queue WHERE queue_id = ?1
