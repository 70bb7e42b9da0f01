-- Lists jobs that ended before ?1 (completed) or ?2 (failed), oldest first.
SELECT job_id, finished_at FROM (
    SELECT job_id, finished_at FROM job_end INDEXED BY job_end_age
    WHERE failed = 0 AND finished_at < ?1 ORDER BY finished_at, job_id LIMIT ?3)
UNION ALL
SELECT job_id, finished_at FROM (
    SELECT job_id, finished_at FROM job_end INDEXED BY job_end_age
    WHERE failed = 1 AND finished_at < ?2 ORDER BY finished_at, job_id LIMIT ?3)
ORDER BY finished_at, job_id LIMIT ?3
