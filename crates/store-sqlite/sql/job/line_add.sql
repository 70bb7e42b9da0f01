-- Adds a run to a line.
INSERT INTO job_line (queue_id, priority, first_job, last_job) VALUES (?1, ?2, ?3, ?4)
