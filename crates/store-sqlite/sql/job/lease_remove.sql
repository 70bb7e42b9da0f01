-- Deletes a page without leases.
DELETE FROM job_lease WHERE token = ?1
