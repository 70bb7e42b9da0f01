-- Deletes keys whose window has passed, longest passed first.
DELETE FROM job_key
WHERE job_id IN (
    SELECT job_id FROM job_key INDEXED BY job_key_passing WHERE holds_until <= ?1 ORDER BY holds_until LIMIT ?2)
