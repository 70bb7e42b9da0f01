-- Marks due waiting jobs as ready, longest due first.
UPDATE job_waiting SET ready = 1
WHERE job_id IN (
    SELECT job_id FROM job_waiting INDEXED BY job_waiting_due
    WHERE queue_id = ?1 AND ready = 0 AND run_at <= ?2 ORDER BY run_at LIMIT ?3)
