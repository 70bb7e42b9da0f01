-- Reads the jobs with a group that are about to become ready.
SELECT job_id, group_name FROM job_waiting INDEXED BY job_waiting_due
WHERE queue_id = ?1 AND ready = 0 AND run_at <= ?2 AND group_name <> '' ORDER BY run_at LIMIT ?3
