-- Inserts a page of leases.
INSERT INTO job_lease (token, queue_id, worker, claimed_at, expires_at, size, jobs, nodes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
