-- Row counts of the tables for unfinished jobs, and of job and job_end.
SELECT (SELECT count(*) FROM job_waiting), (SELECT count(*) FROM job_lease), (SELECT count(*) FROM job_note),
    (SELECT count(*) FROM job_key), (SELECT count(*) FROM job), (SELECT count(*) FROM job_end)
