-- Stores the progress that worker $2 reports, if it holds the lease.
SELECT {schema}.leasehold_job_progress($1, $2, $3, $4, $5) AS held
