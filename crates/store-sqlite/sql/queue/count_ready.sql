-- Counts the jobs of a queue that are ready to claim; stops at ?3 of each kind.
SELECT (
        SELECT coalesce(sum(length), 0)
        FROM (SELECT last_job - first_job + 1 AS length FROM job_line WHERE queue_id = ?1 LIMIT ?3)
    ) + (
        SELECT count(*)
        FROM (SELECT 1 FROM job_waiting INDEXED BY job_waiting_line WHERE queue_id = ?1 AND ready = 1 LIMIT ?3)
    ) + (
        SELECT count(*)
        FROM (SELECT 1 FROM job_waiting INDEXED BY job_waiting_due WHERE queue_id = ?1 AND ready = 0 AND run_at <= ?2 LIMIT ?3)
    ) AS ready
