-- Inserts a job. Its line or waiting row is written separately.
INSERT INTO job (id, queue_id, priority, created_at, kind, payload, max_attempts, backoff_base_us, backoff_factor, backoff_max_us,
    backoff_jitter, timeout_us, trace_context, execution_id, node, group_name)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
