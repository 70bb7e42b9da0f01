-- Reads a waiting job's time, attempts and token.
SELECT run_at, attempts, token FROM job_waiting WHERE job_id = ?1
