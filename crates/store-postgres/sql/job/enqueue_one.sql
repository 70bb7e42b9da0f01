-- Inserts one job that runs at once, and notifies waiting workers.
INSERT INTO {schema}.job (created_at, queue_id, priority, kind, payload, max_attempts, timeout_us, backoff_base_us, backoff_max_us,
    backoff_factor, backoff_jitter, trace_context)
VALUES (coalesce($1::timestamptz, clock_timestamp()), $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
RETURNING id, {schema}.leasehold_job_notify() AS notified
