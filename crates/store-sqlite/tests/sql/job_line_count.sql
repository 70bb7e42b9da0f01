-- How many runs all lines have.
SELECT count(*) FROM job_line
