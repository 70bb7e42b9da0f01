-- Deletes a job that is not kept.
DELETE FROM job WHERE id = ?1
