-- Deletes a job's note and returns its last error.
DELETE FROM job_note WHERE job_id = ?1 RETURNING last_error
