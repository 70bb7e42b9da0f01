-- Extends leases of the worker $2, and returns the jobs it held.
SELECT id FROM {schema}.leasehold_job_renew($1, $2, $3, $4, $5, $6) AS r (id)
