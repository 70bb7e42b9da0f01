-- Saves the progress that a worker reports.
INSERT INTO job_note (job_id, progress) VALUES (?1, ?2)
ON CONFLICT (job_id) DO UPDATE SET progress = excluded.progress
