-- Forgets what was remembered of a job that has ended, and says what went wrong with it last.
DELETE FROM job_note WHERE job_id = ?1 RETURNING last_error
