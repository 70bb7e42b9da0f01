-- Lists the pages of a queue that may contain leases of graph nodes.
SELECT token, queue_id, worker, claimed_at, expires_at, jobs, nodes FROM job_lease INDEXED BY job_lease_of_nodes
WHERE queue_id = ?1 AND nodes = 1
