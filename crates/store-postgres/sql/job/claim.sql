-- Claims up to $4 jobs of the queue $2, which has the name $8, for the worker $3; the first row describes the claim itself. $9: the offset of
-- transaction numbers.
SELECT id, token, attempt, priority, created_at, kind, payload, max_attempts, backoff_base_us, backoff_max_us, backoff_factor,
    backoff_jitter, timeout_us, trace_context, progress, last_error, group_name, lease_us, lease_expires_at, at_limit, next_due_us, expired
FROM {schema}.leasehold_job_claim($1, $2, $8, $3, $4, $5, coalesce($6::timestamptz, '-infinity'), $7, $9, NULL, NULL, NULL)
