-- A job waits no longer.
DELETE FROM job_waiting WHERE job_id = ?1
