-- Saves the error of a job that will be retried.
INSERT INTO job_note (job_id, last_error) VALUES (?1, ?2)
ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
