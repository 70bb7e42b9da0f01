-- Simulates rows from another cluster.
UPDATE leasehold.job_limit SET cluster = 0
