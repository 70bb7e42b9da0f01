-- Reads when the next waiting job of a queue becomes due.
SELECT run_at FROM job_waiting INDEXED BY job_waiting_due WHERE queue_id = ?1 AND ready = 0 ORDER BY run_at LIMIT 1
