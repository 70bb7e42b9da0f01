-- Releases a key that holds until the job's end.
DELETE FROM job_key WHERE job_id = ?1 AND holds_until IS NULL
