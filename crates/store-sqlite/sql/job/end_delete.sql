-- Forgets how a job that is not kept ended.
DELETE FROM job_end WHERE job_id = ?1
