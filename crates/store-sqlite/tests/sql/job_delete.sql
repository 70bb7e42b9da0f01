-- Deletes a job manually.
DELETE FROM job WHERE id = ?1
