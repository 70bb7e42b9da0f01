-- Ends claims of the worker $2, and returns those that it held.
SELECT id, token, becomes, run_at FROM leasehold_job_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
