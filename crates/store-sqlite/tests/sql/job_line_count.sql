-- Counts the runs of all lines.
SELECT count(*) FROM job_line
