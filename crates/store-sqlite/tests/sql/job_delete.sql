-- Deletes a job by hand, as nobody should.
DELETE FROM job WHERE id = ?1
