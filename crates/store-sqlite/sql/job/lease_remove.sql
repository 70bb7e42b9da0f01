-- Deletes a page that no lease is left of.
DELETE FROM job_lease WHERE token = ?1
