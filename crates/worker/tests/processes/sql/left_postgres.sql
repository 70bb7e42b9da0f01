-- What is left of jobs in places that are for jobs that have not ended, and how many have.
SELECT (SELECT count(*) FROM job_waiting), (SELECT count(*) FROM job_lease), (SELECT count(*) FROM job_note),
    (SELECT count(*) FROM job_key), (SELECT count(*) FROM job), (SELECT count(*) FROM job_end)
