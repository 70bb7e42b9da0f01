-- Claims up to $4 jobs of the queue $2 for the worker $3; the first row tells about the claim itself.
SELECT * FROM leasehold_job_claim($1, $2, $3, $4, $5, coalesce($6::timestamptz, '-infinity'), $7)
