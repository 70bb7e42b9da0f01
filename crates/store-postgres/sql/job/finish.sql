-- Ends claims of the worker $2, and returns those that it held; nodes of graphs among them only where $12 says so.
SELECT id, token, becomes, run_at FROM leasehold_job_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
