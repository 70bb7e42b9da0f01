-- Inserts a waiting job.
INSERT INTO job_waiting (job_id, queue_id, priority, created_at, run_at, ready, attempts, token, group_name)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
