-- Simulates rows from another cluster.
UPDATE job_limit SET cluster = 0
