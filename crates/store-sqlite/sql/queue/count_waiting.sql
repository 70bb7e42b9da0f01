-- Counts the waiting jobs of a queue that are due, and those that are scheduled.
SELECT
    (SELECT count(*) FROM job_waiting INDEXED BY job_waiting_line WHERE queue_id = ?1 AND ready = 1)
    + (SELECT count(*) FROM job_waiting INDEXED BY job_waiting_due WHERE queue_id = ?1 AND ready = 0 AND run_at <= ?2) AS due,
    (SELECT count(*) FROM job_waiting INDEXED BY job_waiting_due WHERE queue_id = ?1 AND ready = 0 AND run_at > ?2) AS scheduled
