-- Keeps what went wrong with a job that is tried again.
INSERT INTO job_note (job_id, last_error) VALUES (?1, ?2)
ON CONFLICT (job_id) DO UPDATE SET last_error = excluded.last_error
