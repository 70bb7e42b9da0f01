-- Copies in jobs that run at once.
COPY {schema}.job (id, queue_id, priority, kind, payload, max_attempts, timeout_us, backoff_base_us, backoff_max_us, backoff_factor,
    backoff_jitter, trace_context) FROM STDIN (FORMAT binary)
