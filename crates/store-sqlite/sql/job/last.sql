-- The id of the last job there was.
SELECT last_job FROM job_number WHERE id = 1
