-- Takes its key from a job, whatever it was held for.
DELETE FROM job_key WHERE job_id = ?1
