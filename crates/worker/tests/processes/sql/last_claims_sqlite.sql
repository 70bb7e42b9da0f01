-- The last claim of each ended job: time in microseconds since 1970, and worker.
SELECT job_id, started_at, worker FROM job_end ORDER BY job_id
