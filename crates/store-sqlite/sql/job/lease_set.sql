-- Updates a page of leases.
UPDATE job_lease SET expires_at = ?2, size = ?3, jobs = ?4 WHERE token = ?1
