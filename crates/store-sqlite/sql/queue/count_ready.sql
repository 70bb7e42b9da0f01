-- How many jobs of a queue a worker could have now; once there are ?3 of one kind, no more of it are counted.
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
