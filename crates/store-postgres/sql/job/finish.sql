-- Ends claims of the worker $2, and returns those it held; nodes of graphs only if $12 is true. $13: the offset of transaction numbers.
SELECT id, token, becomes, run_at FROM {schema}.leasehold_job_finish($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
