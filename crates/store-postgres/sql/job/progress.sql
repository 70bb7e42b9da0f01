-- Keeps what the worker $2 says of a job's progress, if it holds the lease.
SELECT leasehold_job_progress($1, $2, $3, $4, $5) AS held
