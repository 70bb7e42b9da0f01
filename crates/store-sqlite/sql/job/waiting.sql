-- How a job waits.
SELECT run_at, attempts, token FROM job_waiting WHERE job_id = ?1
