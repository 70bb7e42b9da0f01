-- Takes its key from a job that has ended, if it was held for that long.
DELETE FROM job_key WHERE job_id = ?1 AND holds_until IS NULL
