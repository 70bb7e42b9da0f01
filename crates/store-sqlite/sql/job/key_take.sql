-- Gives a deduplication key to a job.
INSERT INTO job_key (job_id, queue_id, key, holds_until) VALUES (?1, ?2, ?3, ?4)
