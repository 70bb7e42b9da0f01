-- When each job that has ended was claimed last, in microseconds since 1970, and by whom.
SELECT job_id, started_at, worker FROM job_end ORDER BY job_id
