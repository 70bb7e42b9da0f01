-- Finds the job that holds a deduplication key, and until when.
SELECT job_id, holds_until FROM job_key WHERE queue_id = ?1 AND key = ?2
